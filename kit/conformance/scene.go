package conformance

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A scene is one case on its way: its ids, what it has made, and what went
// wrong. Its methods may be called by many goroutines.
type scene struct {
	*runner
	Case
	plan *plan // that the case is asked of; nil if any request will do
	ctx  context.Context

	mu     sync.Mutex
	values map[string]string
	made   []*resource
	// grant is the first answer that had credentials or their like.
	grant object
	// running is the path at which a running operation is polled.
	running string
	// atOnce is true if the broker did within the request what it did later when
	// the plan was tried, or before the request that was about it, as it may.
	atOnce bool

	failures []Failure
	blocked  string // why the case could not be begun
	omitted  string // what was not checked
	lacking  string // what the broker turned out not to offer
}

func (r *runner) begin(ctx context.Context, c Case, p *plan) *scene {
	return &scene{runner: r, Case: c, plan: p, ctx: ctx, values: map[string]string{}}
}

// attempts is how often a case is tried whose operation has ended before it
// could be asked about.
const attempts = 3

// play runs one case. Its result has no outcome if the context ended.
func (r *runner) play(ctx context.Context, c Case) Result {
	began := r.Now()
	result, reason := r.begun(c)
	if reason != "" {
		result.Outcome, result.Reason = NotApplicable, reason
		return result
	}
	plans, reason := r.know.choose(c)
	switch {
	case reason != "" && r.know.usable():
		result.Outcome, result.Reason = NotApplicable, reason
		return result
	case reason != "":
		result.Outcome, result.Reason = Blocked, reason
		return result
	}
	for n := range attempts {
		var p *plan
		if len(plans) > 0 {
			// The next plan may be one that takes its time.
			p = plans[n%len(plans)]
			result.Plan = p.String()
		}
		s := r.begin(ctx, c, p)
		s.act()
		late := s.late()
		r.ledger.later(s.cleanUp)
		if ctx.Err() != nil {
			return Result{}
		}
		if !late {
			s.conclude(&result)
			break
		}
		if n == attempts-1 {
			result.Outcome = NotApplicable
			result.Reason = fmt.Sprintf("the operation had ended before it could be asked about, or was done in the request, %d times", attempts)
		}
	}
	result.Duration = r.Now().Sub(began)
	return result
}

// firstUnguarded is the first minor version that leaves it to the broker whether it
// asks for credentials.
const firstUnguarded = 13

// begun is the result of a case before it is asked, and why it is not to be.
func (r *runner) begun(c Case) (Result, string) {
	result := Result{ID: c.ID, Section: c.Section, Title: c.Title, Level: c.Level, Since: c.Since, Outcome: Passed}
	minor := r.Minor
	if c.speaks != 0 {
		minor = c.speaks
	}
	source, known := c.At(r.Minor)
	if !known {
		return result, fmt.Sprintf("no rule of version 2.%d", r.Minor)
	}
	result.Level, result.Source = source.Level, source
	switch {
	case minor > r.Minor:
		return result, fmt.Sprintf("it speaks version 2.%d", minor)
	case minor != r.Minor && !r.know.serves(minor):
		return result, fmt.Sprintf("the broker refuses version 2.%d, as it may", minor)
	case c.Section == authentication && r.know.unguarded && minor >= firstUnguarded:
		return result, "the broker asks for no credentials, as it need not"
	}
	return result, ""
}

// cleanUp removes what the case has made.
func (s *scene) cleanUp() { s.dispose(s.ctx, s.made) }

// act runs the case as far as it goes.
func (s *scene) act() {
	if s.given.reach != nil && !s.given.reach(s) {
		if s.blocked == "" {
			s.blocked = "its starting point could not be reached"
		}
		return
	}
	for _, step := range s.steps {
		if !s.asked(step.ask, step.want) {
			return
		}
	}
	if s.story != nil {
		s.story(s)
	}
}

func (s *scene) conclude(result *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result.Failures = s.failures
	switch {
	case s.blocked != "":
		result.Outcome, result.Reason = Blocked, strings.TrimPrefix(s.given.name+": "+s.secrets.hide(s.blocked), ": ")
	case len(s.failures) > 0:
		result.Outcome = Failed
	case s.lacking != "":
		result.Outcome, result.Reason = NotApplicable, s.lacking
	default:
		result.Reason = s.omitted
	}
}

// late reports whether a case failed because the operation that it is about
// had already ended, or was none.
func (s *scene) late() bool {
	if s.atOnce {
		return true
	}
	return !s.settles && len(s.failures) > 0 && s.ended()
}

// ended reports whether no operation runs any more.
func (s *scene) ended() bool {
	if s.running == "" {
		return false
	}
	a, ok := s.exchange(get(s.running).silent())
	state, _ := a.body["state"].(string)
	return ok && (a.gone() || state == succeeded || state == failed)
}

// silent requests are not held against the rules of every answer.
func (q request) silent() request {
	q.quiet = true
	return q
}

// omit records what was not checked.
func (s *scene) omit(what string) { s.omitted = what }

// fail records what is not as it should be.
func (s *scene) fail(rule, request, want, got string) {
	f := s.hidden(Failure{Rule: rule, Request: request, Want: want, Got: got})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.failures, f) {
		s.failures = append(s.failures, f)
	}
}

func (r *runner) hidden(f Failure) Failure {
	f.Request, f.Want, f.Got = r.secrets.hide(f.Request), r.secrets.hide(f.Want), r.secrets.hide(f.Got)
	return f
}

// block records why the case could not be begun.
func (s *scene) block(format string, args ...any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = fmt.Sprintf(format, args...)
	return false
}

// refused reports whether the broker does not do what the case is about, which
// it may: the case is not applicable then.
func (s *scene) refused(a answer, what string, any ...int) bool {
	if !slices.Contains(any, a.status) {
		return false
	}
	s.lacking = fmt.Sprintf("the broker does not %s: %d", what, a.status)
	return true
}

// nothingAt wants a deletion to find nothing at the path of an instance or of a
// binding. Of a broker that takes the deletion of what never was, that tells nothing.
func (s *scene) nothingAt(path string) bool {
	never := path[:strings.LastIndex(path, "/")] + "/$never"
	a, ok := s.send(remove(never + asyncIDs))
	if !ok {
		return false
	}
	if a.status/100 == 2 {
		s.omit("whether something was made, since the broker takes the deletion of what never was")
		return true
	}
	return s.asked(remove(path+asyncIDs), nothingThere)
}

// taken reports whether the broker does not refuse what a case wants refused, and
// what comes after it makes no sense. It fails another case than this.
func (s *scene) taken(a answer, what string) bool {
	if a.status/100 == 4 {
		return false
	}
	s.lacking = fmt.Sprintf("the broker does not refuse %s: %d", what, a.status)
	return true
}

// stopped reports whether the case was blocked.
func (s *scene) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked != ""
}

// must sends a request of a starting point; any other status blocks the case.
func (s *scene) must(q request, any ...int) (answer, bool) {
	a, ok := s.exchange(q)
	switch {
	case !ok:
		return a, s.block("%s: no answer: %s", a.request, a.fault)
	case !slices.Contains(any, a.status):
		s.atOnce = s.doneAtOnce(a, any)
		return a, s.block("%s: want status %s, got %s", a.request, alternatives(any), a)
	}
	return a, true
}

// asked sends one request and checks the answer. What a refused request must
// not change is read before and after (ERR-08).
func (s *scene) asked(q request, w want) bool {
	refusal := q.method != http.MethodGet && len(w.status) > 0 && w.status[0] >= 400 && s.running == ""
	var before snapshot
	if refusal {
		before = s.look(q)
	}
	a, ok := s.send(q)
	if !ok || !s.checked(a, w) {
		return false
	}
	if refusal && a.status >= 400 {
		s.unchanged(a, before, s.look(q))
	}
	return true
}

// send is exchange, where no answer blocks the case: it says nothing of the
// rule that the case is about.
func (s *scene) send(q request) (answer, bool) {
	a, ok := s.exchange(q)
	if !ok && s.ctx.Err() == nil {
		if a.slow {
			s.watch.add(s.runner, Failure{"PROV-32", a.request, "an answer within " + requestLimit.String(), a.fault})
		}
		s.block("%s: no answer: %s", a.request, a.fault)
	}
	return a, ok
}

// checked compares an answer with what is wanted. It is false if the status is
// another, so that what follows makes no sense.
func (s *scene) checked(a answer, w want) bool {
	code, _ := a.body["error"].(string)
	switch {
	case len(w.status) > 0 && !slices.Contains(w.status, a.status):
		s.atOnce = s.doneAtOnce(a, w.status)
		s.fail(s.Rule(), a.request, "status "+alternatives(w.status)+withCode(w.code), a.String())
		return false
	case a.status == http.StatusUnprocessableEntity && w.code != "" && code != w.code:
		s.fail(s.Rule(), a.request, "the error "+w.code, a.String())
		return false
	case a.status == http.StatusUnprocessableEntity && w.code == "" && reserved(code) && len(w.status) == 1:
		s.watch.add(s.runner, Failure{"ERR-07", a.request, "no reserved error code", a.String()})
	}
	for _, t := range w.tests {
		if wanted, got := t(s, a); wanted != "" {
			s.fail(s.Rule(), a.request, wanted, got)
		}
	}
	return true
}

// doneAtOnce reports whether a request that begins an operation was carried out
// within the request instead. A broker that waits for fast work answers 202 only
// when the work was slow; of a plan that it does only asynchronously, it may not.
func (s *scene) doneAtOnce(a answer, wanted []int) bool {
	mayWait := s.plan != nil && !s.plan.asyncOnly && !s.plan.bindAsyncOnly
	return mayWait && s.running == "" && slices.Equal(wanted, []int{http.StatusAccepted}) &&
		(a.status == http.StatusOK || a.status == http.StatusCreated)
}

func withCode(code string) string {
	if code == "" {
		return ""
	}
	return " " + code
}

func alternatives(statuses []int) string {
	texts := make([]string, len(statuses))
	for i, s := range statuses {
		texts[i] = fmt.Sprint(s)
	}
	return strings.Join(texts, " or ")
}

// Pauses between two polls of an operation.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 5 * time.Second
	// oddPolls is how many answers that are none end the polling.
	oddPolls = 3
)

// States of an operation.
const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
	gone       = "gone" // a name of ours, for 410 and 404
)

// settle polls the operation that was accepted last until it has ended, and
// gives its state, or what came instead.
func (s *scene) settle(path string) string {
	query := ids
	if _, ok := s.known("operation"); ok {
		query += "&operation=$operation"
	}
	return s.poll(path + query)
}

func (s *scene) poll(path string) string {
	ctx, cancel := context.WithTimeout(s.ctx, s.OperationTimeout)
	defer cancel()
	odd := 0
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		a, ok := s.exchange(get(path))
		switch state, _ := a.body["state"].(string); {
		case !ok:
			if odd++; odd == oddPolls || s.ctx.Err() != nil {
				s.block("%s: no answer: %s", a.request, a.fault)
				return "no answer: " + a.fault
			}
		case a.gone():
			return gone
		case a.status == http.StatusOK && (state == succeeded || state == failed):
			return state
		case a.status != http.StatusOK || state != inProgress:
			if odd++; odd == oddPolls { // platforms poll on; a check need not for long
				return a.String()
			}
		}
		if !sleep(ctx, pause) {
			return "still in progress when the time was over"
		}
	}
}

// ends wants the operation that was accepted last to end in a state.
func (s *scene) ends(path string, wanted ...string) bool {
	state := s.settle(path)
	if !slices.Contains(wanted, state) {
		if s.stopped() {
			return false
		}
		s.fail(s.Rule(), "polling "+s.text(path), "the operation to end as "+strings.Join(wanted, " or "), state)
		return false
	}
	return true
}

// sleep is false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Names in paths and bodies.
var variable = regexp.MustCompile(`\$[a-z]+[0-9]?`)

// known gives a value that was captured or made before.
func (s *scene) known(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[name]
	return v, ok
}

func (s *scene) remember(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = value
}

// value is what $name stands for: an id of the catalog, what the last answers
// gave (operation, location, etag), or an id that is made when it is first
// named.
func (s *scene) value(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[name]; ok {
		return v
	}
	v := newID()
	if name == "login" {
		v = base64.StdEncoding.EncodeToString([]byte(s.target.Username + ":" + s.target.Password))
	}
	if p := s.plan; p != nil {
		switch name {
		case "service":
			v = p.service.id
		case "plan":
			v = p.id
		case "otherplan":
			v = p.sibling().id
		case "laterplan":
			v = p.later().id
		case "foreignplan":
			v = p.foreign().id
		case "foreignservice":
			v = p.foreign().service.id
		case "maintenance":
			v = p.maintenance
		}
	}
	s.values[name] = v
	return v
}

// newID is a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	x := hex.EncodeToString(b[:])
	return x[:8] + "-" + x[8:12] + "-4" + x[13:16] + "-8" + x[17:20] + "-" + x[20:]
}

// text replaces the names in a text.
func (s *scene) text(t string) string {
	return variable.ReplaceAllStringFunc(t, func(name string) string { return s.value(name[1:]) })
}

// unnamed is the part of a query that names the operation.
var unnamed = regexp.MustCompile(`[?&]operation=\$operation`)

// address replaces the names in a path. A broker that named no operation is
// not asked for one.
func (s *scene) address(path string) string {
	if _, ok := s.known("operation"); !ok {
		path = unnamed.ReplaceAllString(path, "")
	}
	return variable.ReplaceAllStringFunc(path, func(name string) string {
		if name == "$location" {
			return s.value("location")
		}
		return url.QueryEscape(s.value(name[1:]))
	})
}

// fill replaces the names in a JSON value.
func (s *scene) fill(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.fill(v[i])
		}
		return out
	case object:
		out := object{}
		for name, member := range v {
			out[name] = s.fill(member)
		}
		return out
	default:
		return v
	}
}

// A snapshot is what can be read of everything that a request could change.
type snapshot map[string]string

// look reads the state of all that was made, and of what the request names.
func (s *scene) look(q request) snapshot {
	if s.plan == nil {
		return nil
	}
	seen := snapshot{}
	paths := []string{s.address(q.path)}
	s.mu.Lock()
	for _, r := range s.made {
		paths = append(paths, r.path)
	}
	s.mu.Unlock()
	for _, path := range paths {
		path, _, _ = strings.Cut(path, "?")
		segments := strings.Split(path, "/")
		if len(segments) != 4 && len(segments) != 6 || segments[1] != "v2" || segments[len(segments)-1] == "" {
			continue
		}
		if len(segments) == 4 && !s.plan.service.instancesRetrievable || len(segments) == 6 && !s.plan.service.bindingsRetrievable {
			continue
		}
		if a, ok := s.exchange(get(path)); ok {
			seen[path] = fmt.Sprint(a.status)
			if a.status == http.StatusOK {
				kept := object{} // the rest may be told once, or be made anew for each answer
				for _, member := range []string{"service_id", "plan_id", "parameters", "maintenance_info"} {
					kept[member] = a.body[member]
				}
				seen[path] += " " + encode(kept)
			}
		}
	}
	return seen
}

// unchanged compares two snapshots. What was read may hold credentials: only
// the statuses are told.
func (s *scene) unchanged(a answer, before, after snapshot) {
	for path, was := range before {
		if now, read := after[path]; read && now != was {
			s.watch.add(s.runner, Failure{"ERR-08", a.request, "nothing to change",
				fmt.Sprintf("%s, after which GET %s gives %.3s and not the same as before (%.3s)", a, path, now, was)})
		}
	}
}

// all runs n times at once, and waits for all.
func (s *scene) all(n int, run func(n int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { run(i) })
	}
	group.Wait()
}
