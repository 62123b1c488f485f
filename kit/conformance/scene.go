package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A scene is one run of a case: its ids, what it has made, and its failures. Its methods may be called concurrently.
type scene struct {
	*runner
	Case
	plan *plan // the plan that the case is asked of; nil if the case needs none
	ctx  context.Context

	mu     sync.Mutex
	values map[string]string
	made   []*resource
	// grant is the first answer that had the binding's grant.
	grant object
	// running is the path for polling the operation that runs.
	running string
	// atOnce says that the broker finished the operation before it could be asked about: within the
	// request, unlike when the plan was tried, or before the next request. A broker may do so.
	atOnce bool

	failures []Failure
	blocked  string // why the case could not reach its starting point
	omitted  string // names a part that was not checked
	lacking  string // says which feature the broker turned out not to offer
}

func (r *runner) begin(ctx context.Context, c Case, p *plan) *scene {
	return &scene{runner: r, Case: c, plan: p, ctx: ctx, values: map[string]string{}}
}

// attempts is how often a case is tried if its operation ends before it can be asked about.
const attempts = 3

// play runs one case. The result has no outcome if the context ended.
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
			// The next plan may be a slower one.
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
			result.Reason = fmt.Sprintf("the operation had ended before it could be asked about, or was done in the request, "+
				"%d times", attempts)
		}
	}
	result.Duration = r.Now().Sub(began)
	return result
}

// firstUnguarded is the first minor version that lets a broker do without credentials.
const firstUnguarded = 13

// begun returns the result of a case before it runs, and the reason if the case is not applicable.
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

// act runs the case until a step fails.
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

// late reports whether a case failed only because the operation that it is about had already ended, or did not exist.
func (s *scene) late() bool {
	if s.atOnce {
		return true
	}
	return !s.settles && len(s.failures) > 0 && s.ended()
}

// ended reports whether the operation of the case has ended.
func (s *scene) ended() bool {
	if s.running == "" {
		return false
	}
	a, ok := s.exchange(get(s.running).silent())
	state := text(a.body, "state")
	return ok && (a.gone() || state == succeeded || state == failed)
}

// omit records what was not checked.
func (s *scene) omit(what string) { s.omitted = what }

// fail records a failure.
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

// block records why the case is blocked, and returns false.
func (s *scene) block(format string, args ...any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = fmt.Sprintf(format, args...)
	return false
}
