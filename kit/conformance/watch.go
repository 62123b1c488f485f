package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// A watch checks every answer of a run against the rules that hold for all answers. The cases that
// are marked watched report what it finds, by the id of the rule.
type watch struct {
	mu   sync.Mutex
	seen map[string][]Failure
}

// samples is the number of failures of one rule that are reported.
const samples = 5

// shape matches the ids in a request; requests that differ only in ids have the same shape. The expression
// is large, and compiled at its first use: otherwise every start of a program with the kit would pay for it.
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen[f.Rule]) == samples {
		return
	}
	if w.seen == nil {
		w.seen = map[string][]Failure{}
	}
	f = r.hidden(f)
	for _, known := range w.seen[f.Rule] {
		if shape().ReplaceAllString(known.Request, "") == shape().ReplaceAllString(f.Request, "") {
			return
		}
	}
	w.seen[f.Rule] = append(w.seen[f.Rule], f)
}

// usual matches the paths of instances and bindings whose ids need no escaping: requests to other
// paths may be lost on the way.
var usual = regexp.MustCompile(`^/v2/service_instances/[A-Za-z0-9._~-]+(/service_bindings/[A-Za-z0-9._~-]+)?(/last_operation)?$`)

// maxOperation is the length of the longest operation token (PROV-25).
const maxOperation = 10_000

// A finding is an answer with its failures.
type finding struct {
	response
	failures []Failure
}

// bad records a failure. Without got, the failure shows the whole answer.
func (f *finding) bad(rule, want string, got ...string) {
	if len(got) == 0 {
		got = []string{f.String()}
	}
	f.failures = append(f.failures, Failure{rule, f.request, want, got[0]})
}

// violations returns what is wrong with an answer, whatever the request was. Answers to requests in
// another version than the run's are checked against few rules: other sentences hold for them.
func violations(r *runner, a response) []Failure {
	f := &finding{response: a}
	if a.status == http.StatusNotModified {
		return nil
	}
	for _, secret := range r.secrets.in(a) {
		f.bad("ERR-13", "no secret in it", fmt.Sprintf("%d with %s", a.status, secret))
	}
	if a.status == http.StatusAccepted && a.ofBinding() && a.method != http.MethodGet && a.minor > 0 && a.minor < 14 {
		f.bad("HDR-10", "no 202 for a binding before version 2.14")
	}
	if a.minor != 0 && a.minor != r.Minor {
		return f.failures
	}
	v2 := strings.HasPrefix(a.path, "/v2")
	if a.body == nil && !(len(a.raw) == 0 && a.method == http.MethodHead) {
		f.bad("ERR-01", "a body that is a JSON object")
	}
	if mime := a.header.Get("Content-Type"); len(a.raw) > 0 && mime != "application/json" &&
		!strings.HasPrefix(mime, "application/json;") {
		f.bad("MISC-04", "the content type application/json", fmt.Sprintf("%d with %q", a.status, mime))
	}
	echo := a.header.Get(requestHeader)
	switch sent := a.identity; {
	case sent == "" && echo != "":
		f.bad("RID-03", "no header "+requestHeader+", since none was sent", fmt.Sprintf("%d with %.100q", a.status, echo))
	case sent != "" && len(sent) < 100 && echo != sent:
		f.bad("RID-01", "the header "+requestHeader+" as it was sent", fmt.Sprintf("%d with %.100q", a.status, echo))
	}
	if a.status >= 500 {
		f.bad("ORB-07", "no 5xx")
	}
	ours := usual.MatchString(a.path)
	switch {
	case ours && a.method == http.MethodGet && a.status == http.StatusGone && !a.ofLastOperation():
		f.bad("ERR-11", "404 of what cannot be fetched")
	case ours && a.method == http.MethodDelete && a.status == http.StatusNotFound:
		f.bad("ERR-11", "410 of what cannot be deleted")
	case ours && a.status == http.StatusLocked:
		f.bad("ERR-11", "422 ConcurrencyError of what is busy")
	case a.ofLastOperation() && (a.status/100 == 2 && a.status != http.StatusOK || a.status/100 == 3):
		f.bad("LOP-04", "200 of an operation, whatever its state")
	}
	if v2 && a.status/100 == 3 {
		f.bad("INP-19", "no redirect", fmt.Sprintf("%d to %.100q", a.status, a.header.Get("Location")))
	}
	if a.status >= 400 {
		f.ofRefusal()
	}
	if a.method == http.MethodGet {
		if a.status == http.StatusOK && a.ofLastOperation() {
			f.ofState()
		}
		return f.failures
	}
	if a.status == http.StatusAccepted {
		f.ofAccepted(r.Minor)
		return f.failures
	}
	if v2 && a.status/100 == 2 && a.body["operation"] != nil {
		f.bad("PROV-25/only", "no operation but with a 202")
	}
	return f.failures
}

// word matches a well-formed error code.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

func (f *finding) ofRefusal() {
	for _, member := range []string{"error", "description"} {
		v, ok := f.body[member]
		if text, isText := v.(string); ok && (!isText || text == "") {
			f.bad("ERR-02", member+" to be a text that is not empty")
		} else if ok && member == "error" && !word.MatchString(text) {
			f.bad("ERR-02/word", "error to be a single word")
		} else if utf8.RuneCountInString(text) > 8<<10 {
			f.bad("ERR-13", member+" to be short")
		}
	}
	if text(f.body, "description") == "" && f.status != http.StatusGone {
		f.bad("ERR-02/description", "description to say why")
	}
	for _, flag := range []string{"instance_usable", "update_repeatable"} {
		if v, ok := f.body[flag]; ok && typeOf(v) != "boolean" {
			f.bad("ERR-10", flag+" to be true or false")
		}
	}
	_, usable := f.body["instance_usable"]
	_, repeatable := f.body["update_repeatable"]
	update := f.method == http.MethodPatch
	deprovision := f.method == http.MethodDelete && !f.ofBinding()
	if usable && !update && !deprovision || repeatable && !update {
		f.bad("ERR-10", "no instance_usable but for updates and deprovisions, no update_repeatable but for updates")
	}
}

func (f *finding) ofState() {
	state := text(f.body, "state")
	if state != inProgress && state != succeeded && state != failed {
		f.bad("LOP-01/state", `state to be "in progress", "succeeded" or "failed"`)
	}
	if v, ok := f.body["description"]; ok && !f.ofBinding() {
		if text, isText := v.(string); !isText || text == "" {
			f.bad("LOP-21", "description to be a text that is not empty, or absent")
		}
	}
	_, usable := f.body["instance_usable"]
	_, repeatable := f.body["update_repeatable"]
	if (usable || repeatable) && f.ofBinding() {
		f.bad("ERR-10", "instance_usable and update_repeatable only with the failure of an update or a deprovision")
	}
	for _, member := range grantMembers {
		if _, ok := f.body[member]; ok {
			f.bad("LOB-07", "nothing that a binding gives")
		}
	}
	if after := f.header.Get("Retry-After"); after != "" && !seconds.MatchString(after) {
		f.bad("LOP-05", "Retry-After in seconds", fmt.Sprintf("%q", after))
	} else if after != "" && state != inProgress {
		f.bad("LOP-05/ended", "no Retry-After once the operation has ended")
	}
}

// seconds matches a positive whole number of seconds.
var seconds = regexp.MustCompile(`^[1-9][0-9]*$`)

func (f *finding) ofAccepted(minor int) {
	// The status resource is not part of the API: there, a 202 needs no permission.
	if strings.HasPrefix(f.path, "/v2") && !f.mayWait() {
		f.bad("PROV-06", "no 202, since the request did not allow it")
	}
	if v := f.body["operation"]; v != nil {
		token, isText := v.(string)
		long := minor >= 15 && utf8.RuneCountInString(token) > maxOperation // earlier versions only say that it is a string
		if !isText || token == "" && minor >= 12 && f.method == http.MethodPatch || long {
			f.bad("PROV-25", "operation to be a text, since 2.15 of at most 10000 characters, and not empty for an update")
		}
	}
	if f.ofBinding() {
		for _, member := range grantMembers {
			if _, ok := f.body[member]; ok {
				f.bad("BIND-21", "nothing that a binding gives before it is ready")
			}
		}
	}
}

// in finds secrets that an answer reveals in a wrong place: in any header, or in the body of a refusal or a poll.
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

// tour asks for one answer of each kind, so that the rules for every answer are checked even if
// nothing else is asked.
func tour(s *scene) {
	for _, q := range []request{
		get(catalog), get(catalog).with("Authorization", ""), get(catalog).with(versionHeader, "3.0"),
		get(instance), get(instanceOperation), remove(instance + ids), remove(binding + ids), get("/v2/nothing-here"),
		set(instance, raw("{")), set(instance, members(object{})), toProvision(provision),
	} {
		if _, ok := s.send(q); !ok {
			return
		}
	}
	if state := s.settle(instanceOperation); state != succeeded {
		return
	}
	for _, q := range []request{
		toProvision(provision), toProvision(provision.with("space_guid", "$space2")), get(instance),
		patch(instance, update), patch(instance, raw("[]")), toBind(bind),
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
		get(binding), toBind(bind),
		toBind(bind.with("app_guid", "$app2").with("bind_resource.app_guid", "$app2")),
		toUnbind,
	} {
		if _, ok := s.send(q); !ok {
			return
		}
	}
	s.settle(bindingOperation)
	if _, ok := s.send(toDeprovision); ok {
		s.settle(instanceOperation)
	}
}
