package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// A watch holds every answer of a run against the rules that are true of all
// of them. What it sees is told by the cases that are marked watched, by the
// id of the rule.
type watch struct {
	mu   sync.Mutex
	seen map[string][]Failure
}

// samples is how many failures of one rule are told.
const samples = 5

// shape is what stays of a request when its ids are left out. It is large, and made when it is first used: every
// start of a program that has the kit would pay for it.
var shape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|=[^& ]*`) })

func (w *watch) of(rule string) []Failure {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[rule]
}

func (w *watch) see(r *runner, a response) {
	for _, f := range violations(r, a) {
		w.add(r, f)
	}
}

func (w *watch) add(r *runner, f Failure) {
	f = r.hidden(f)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[string][]Failure{}
	}
	for _, known := range w.seen[f.Rule] {
		if shape().ReplaceAllString(known.Request, "") == shape().ReplaceAllString(f.Request, "") {
			return
		}
	}
	if len(w.seen[f.Rule]) < samples {
		w.seen[f.Rule] = append(w.seen[f.Rule], f)
	}
}

// usual are the paths of instances and bindings whose ids need no escaping:
// others may be lost on the way.
var usual = regexp.MustCompile(`^/v2/service_instances/[A-Za-z0-9._~-]+(/service_bindings/[A-Za-z0-9._~-]+)?(/last_operation)?$`)

// maxOperation is the length of the longest operation token (PROV-25).
const maxOperation = 10_000

// violations are what is wrong with an answer whatever was asked. What speaks
// another version than the run's is held against little: other sentences hold
// for it.
func violations(r *runner, a response) []Failure {
	var out []Failure
	bad := func(rule, want, got string) {
		out = append(out, Failure{Rule: rule, Request: a.request, Want: want, Got: got})
	}
	if a.status == http.StatusNotModified {
		return nil
	}
	for _, secret := range r.secrets.in(a) {
		bad("ERR-13", "no secret in it", fmt.Sprintf("%d with %s", a.status, secret))
	}
	if a.status == http.StatusAccepted && a.ofBinding() && a.method != http.MethodGet && a.minor > 0 && a.minor < 14 {
		bad("HDR-10", "no 202 for a binding before version 2.14", a.String())
	}
	if a.minor != 0 && a.minor != r.Minor {
		return out
	}
	v2 := strings.HasPrefix(a.path, "/v2")
	if a.body == nil && !(len(a.raw) == 0 && a.method == http.MethodHead) {
		bad("ERR-01", "a body that is a JSON object", a.String())
	}
	if mime := a.header.Get("Content-Type"); len(a.raw) > 0 && mime != "application/json" &&
		!strings.HasPrefix(mime, "application/json;") {
		bad("MISC-04", "the content type application/json", fmt.Sprintf("%d with %q", a.status, mime))
	}
	echo := a.header.Get(requestHeader)
	switch sent := a.identity; {
	case sent == "" && echo != "":
		bad("RID-03", "no header "+requestHeader+", since none was sent", fmt.Sprintf("%d with %.100q", a.status, echo))
	case sent != "" && len(sent) < 100 && echo != sent:
		bad("RID-01", "the header "+requestHeader+" as it was sent", fmt.Sprintf("%d with %.100q", a.status, echo))
	}
	if a.status >= 500 {
		bad("ORB-07", "no 5xx", a.String())
	}
	ours := usual.MatchString(a.path)
	switch {
	case ours && a.method == http.MethodGet && a.status == http.StatusGone && !a.ofLastOperation():
		bad("ERR-11", "404 of what cannot be fetched", a.String())
	case ours && a.method == http.MethodDelete && a.status == http.StatusNotFound:
		bad("ERR-11", "410 of what cannot be deleted", a.String())
	case ours && a.status == http.StatusLocked:
		bad("ERR-11", "422 ConcurrencyError of what is busy", a.String())
	case a.ofLastOperation() && (a.status/100 == 2 && a.status != http.StatusOK || a.status/100 == 3):
		bad("LOP-04", "200 of an operation, whatever its state", a.String())
	}
	if v2 && a.status/100 == 3 {
		bad("INP-19", "no redirect", fmt.Sprintf("%d to %.100q", a.status, a.header.Get("Location")))
	}
	if a.status >= 400 {
		out = append(out, ofRefusal(a)...)
	}
	if a.method == http.MethodGet {
		if a.status == http.StatusOK && a.ofLastOperation() {
			out = append(out, ofState(a)...)
		}
		return out
	}
	if a.status == http.StatusAccepted {
		return append(out, ofAccepted(r.Minor, a)...)
	}
	if v2 && a.status/100 == 2 && a.body["operation"] != nil {
		bad("PROV-25/only", "no operation but with a 202", a.String())
	}
	return out
}

// word is what an error code looks like.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

func ofRefusal(a response) []Failure {
	var out []Failure
	bad := func(rule, want string) {
		out = append(out, Failure{Rule: rule, Request: a.request, Want: want, Got: a.String()})
	}
	for _, member := range []string{"error", "description"} {
		v, ok := a.body[member]
		if text, isText := v.(string); ok && (!isText || text == "") {
			bad("ERR-02", member+" to be a text that is not empty")
		} else if ok && member == "error" && !word.MatchString(text) {
			bad("ERR-02/word", "error to be a single word")
		} else if utf8.RuneCountInString(text) > 8<<10 {
			bad("ERR-13", member+" to be short")
		}
	}
	if text(a.body, "description") == "" && a.status != http.StatusGone {
		bad("ERR-02/description", "description to say why")
	}
	for _, flag := range []string{"instance_usable", "update_repeatable"} {
		if v, ok := a.body[flag]; ok && typeOf(v) != "boolean" {
			bad("ERR-10", flag+" to be true or false")
		}
	}
	_, usable := a.body["instance_usable"]
	_, repeatable := a.body["update_repeatable"]
	update := a.method == http.MethodPatch
	deprovision := a.method == http.MethodDelete && !a.ofBinding()
	if usable && !update && !deprovision || repeatable && !update {
		bad("ERR-10", "no instance_usable but for updates and deprovisions, no update_repeatable but for updates")
	}
	return out
}

func ofState(a response) []Failure {
	var out []Failure
	bad := func(rule, want string) {
		out = append(out, Failure{Rule: rule, Request: a.request, Want: want, Got: a.String()})
	}
	state, _ := a.body["state"].(string)
	if state != inProgress && state != succeeded && state != failed {
		bad("LOP-01/state", `state to be "in progress", "succeeded" or "failed"`)
	}
	if v, ok := a.body["description"]; ok && !a.ofBinding() {
		if text, isText := v.(string); !isText || text == "" {
			bad("LOP-21", "description to be a text that is not empty, or absent")
		}
	}
	_, usable := a.body["instance_usable"]
	_, repeatable := a.body["update_repeatable"]
	if (usable || repeatable) && a.ofBinding() {
		bad("ERR-10", "instance_usable and update_repeatable only with the failure of an update or a deprovision")
	}
	for _, member := range grantMembers {
		if _, ok := a.body[member]; ok {
			bad("LOB-07", "nothing that a binding gives")
		}
	}
	if after := a.header.Get("Retry-After"); after != "" && !seconds.MatchString(after) {
		out = append(out, Failure{Rule: "LOP-05", Request: a.request, Want: "Retry-After in seconds",
			Got: fmt.Sprintf("%q", after)})
	} else if after != "" && state != inProgress {
		bad("LOP-05/ended", "no Retry-After once the operation has ended")
	}
	return out
}

// seconds are a positive whole number of them.
var seconds = regexp.MustCompile(`^[1-9][0-9]*$`)

func ofAccepted(minor int, a response) []Failure {
	var out []Failure
	bad := func(rule, want string) {
		out = append(out, Failure{Rule: rule, Request: a.request, Want: want, Got: a.String()})
	}
	// The status resource is not part of the API: there, 202 is a usual answer.
	if strings.HasPrefix(a.path, "/v2") && !a.mayWait() {
		bad("PROV-06", "no 202, since the request did not allow it")
	}
	if v := a.body["operation"]; v != nil {
		token, isText := v.(string)
		long := minor >= 15 && utf8.RuneCountInString(token) > maxOperation // earlier versions say that it is a text, and no more
		if !isText || token == "" && minor >= 12 && a.method == http.MethodPatch || long {
			bad("PROV-25", "operation to be a text, since 2.15 of at most 10000 characters, and not empty for an update")
		}
	}
	if a.ofBinding() {
		for _, member := range grantMembers {
			if _, ok := a.body[member]; ok {
				bad("BIND-21", "nothing that a binding gives before it is ready")
			}
		}
	}
	return out
}

// in finds the secrets that an answer tells where it must not: in any header,
// and in the body of a refusal or of a poll.
func (k *secrets) in(a response) []string {
	var text strings.Builder
	if a.status >= 400 || a.ofLastOperation() {
		text.Write(a.raw)
	}
	for name, values := range a.header {
		fmt.Fprintln(&text, name, values)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, secret := range k.grave {
		if tokenIn(text.String(), secret) {
			return []string{"a password or credentials in it"}
		}
	}
	return nil
}

// tour asks for one answer of each kind, so that the rules of every answer see
// them also when nothing else is asked.
func tour(s *scene) {
	for _, q := range []request{
		get(catalog), get(catalog).with("Authorization", ""), get(catalog).with(versionHeader, "3.0"),
		get(instance), get(instanceOperation), remove(instance + ids), remove(binding + ids), get("/v2/nothing-here"),
		set(instance, raw("{")), set(instance, members(object{})), set(instance+async, body(provision)),
	} {
		if _, ok := s.send(q); !ok {
			return
		}
	}
	if state := s.settle(instanceOperation); state != succeeded {
		return
	}
	for _, q := range []request{
		set(instance+async, body(provision)), set(instance+async, body(provision).with("space_guid", "$space2")), get(instance),
		patch(instance, members(object{"service_id": "$service"})), patch(instance, raw("[]")), set(binding+async, body(bind)),
	} {
		if q.method == http.MethodPatch && s.plan.noUpdates {
			continue
		}
		if _, ok := s.send(q); !ok {
			return
		}
	}
	s.settle(bindingOperation)
	for _, q := range []request{
		get(binding), set(binding+async, body(bind)),
		set(binding+async, body(bind).with("app_guid", "$app2").with("bind_resource.app_guid", "$app2")),
		remove(binding + asyncIDs),
	} {
		if _, ok := s.send(q); !ok {
			return
		}
	}
	s.settle(bindingOperation)
	if _, ok := s.send(remove(instance + asyncIDs)); ok {
		s.settle(instanceOperation)
	}
}
