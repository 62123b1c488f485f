// Package conformance asks a service broker, over HTTP alone, everything that the Open Service
// Broker API has an answer to, and reports each answer that deviates from the specification. It
// learns what each plan can do from the catalog and by trying; a case about something that no plan
// can do is not applicable. Its cases are named after the rules (PROV-08 and so on;
// docs/conformance.md), and are listed in tables, one file for each section of the rules.
//
// It removes what it makes, even when it is interrupted. It knows nothing of the inside of a
// broker, and leaves the format of reports to package report.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Target is the broker to ask.
type Target struct {
	URL                string // with its base path, if it has one
	Username, Password string
}

// String returns the address and the user name, without the password.
func (t Target) String() string { return t.URL + " as " + t.Username }

// GoString returns the address and the user name, without the password.
func (t Target) GoString() string { return t.String() }

// Options choose what is asked, and how. Now is required.
type Options struct {
	// Now is the clock, which measures how long cases take.
	Now func() time.Time
	// Client makes the requests; nil means a default one. Redirects are never followed.
	Client *http.Client
	// Parallel is the number of cases that run at a time; zero means 4.
	Parallel int
	// Level excludes the cases of a lower level.
	Level Level
	// Minor is the minor version of the API to speak, unless a case is about another; zero means 17.
	// Cases of later versions are not applicable.
	Minor int
	// Only excludes the cases whose id and title it does not match.
	Only *regexp.Regexp
	// Service and Plan, each a name or an id, restrict the plans that are tried.
	Service, Plan string
	// Without names services, by name or id, whose plans are not tried, such as those that are slow or expensive.
	Without []string
	// Parameters are passed to every provision, UpdateParameters to updates, and BindParameters to
	// binds, if a plan needs any.
	Parameters, UpdateParameters, BindParameters map[string]any
	// OperationTimeout is how long to wait for an operation; zero means 10 minutes.
	OperationTimeout time.Duration
	// Known is what an earlier run learned about the same broker; with it, plans are not tried again.
	Known *Knowledge
	// Observe is called for each step of the run, one at a time.
	Observe func(Progress)
}

// minor returns the minor version to speak.
func (o Options) minor() int { return cmp.Or(o.Minor, NewestMinor) }

// Takes returns the case as it is in the version that is spoken, and reports whether the options choose it.
func (o Options) Takes(c Case) (Case, bool) {
	if s, ok := c.At(o.minor()); ok {
		c.Level = s.Level
	}
	return c, c.Level >= o.Level && (o.Only == nil || o.Only.MatchString(c.ID+" "+c.Title))
}

// chosen returns the cases that the options choose.
func (o Options) chosen() []Case {
	var out []Case
	for _, c := range Cases() {
		if c, ok := o.Takes(c); ok {
			out = append(out, c)
		}
	}
	return out
}

// Cases returns the cases that the options choose and the version has.
func (o Options) Cases() []Case {
	return slices.DeleteFunc(o.chosen(), func(c Case) bool {
		_, known := c.At(o.minor())
		return !known
	})
}

// Versions of the API that the kit knows, and limits.
const (
	OldestMinor = 9
	NewestMinor = 17
	// requestLimit is the longest time that a broker may take to answer (PROV-32).
	requestLimit = time.Minute
	// cleanUpLimit bounds the time for removing what was made, once the run is over.
	cleanUpLimit = 2 * time.Minute
	defaultWait  = 10 * time.Minute
	parallel     = 4
)

// An Outcome is the outcome of a case.
type Outcome int

// The outcomes.
const (
	Passed        Outcome = iota + 1
	Failed                // an answer deviates from the specification
	Blocked               // the starting point of the case could not be reached
	NotApplicable         // the broker does not offer what the case is about
)

// String returns the name of the outcome.
func (o Outcome) String() string {
	return map[Outcome]string{Passed: "passed", Failed: "failed", Blocked: "blocked", NotApplicable: "not applicable"}[o]
}

// A Failure is one deviation from a rule. It contains no credentials.
type Failure struct {
	Rule    string // the id of the rule
	Request string // the request that showed the failure
	Want    string
	Got     string
}

// String returns the failure in one line.
func (f Failure) String() string {
	return fmt.Sprintf("%s: %s: want %s, got %s", f.Rule, f.Request, f.Want, f.Got)
}

// A Result is the outcome of one case, with details.
type Result struct {
	ID, Section, Title string
	Level              Level  // in the version that is spoken
	Since              int    // the first minor version with the rule
	Source             Source // the source that decides the case
	Plan               string // the plan that was asked, as service/plan, or empty
	Outcome            Outcome
	Reason             string // why the case is not applicable or blocked, or which part was not checked
	Failures           []Failure
	Duration           time.Duration
}

// A Report is the result of a run.
type Report struct {
	URL     string
	Minor   int      // the minor version that was spoken
	Results []Result // in the order of the rules
	// Left are the paths of what was made and could not be removed, with the reasons. Unsure are the
	// paths of what may have been made: the broker answered neither the request nor the deletion.
	Left, Unsure []string
	// Hazards are dangers that no case can fail for.
	Hazards []Hazard
	// Interrupted says that not every case was asked.
	Interrupted bool
	Duration    time.Duration
}

// A Hazard is something that a broker may do, but should not.
type Hazard struct {
	Level  Level // in the version that was spoken
	Text   string
	Source Source
}

// Count returns the number of cases with the outcome.
func (r Report) Count(o Outcome) int {
	return r.count(func(c Result) bool { return c.Outcome == o })
}

// Failures returns the number of cases of a level that failed.
func (r Report) Failures(l Level) int {
	return r.count(func(c Result) bool { return c.Outcome == Failed && c.Level == l })
}

func (r Report) count(is func(c Result) bool) (n int) {
	for _, c := range r.Results {
		if is(c) {
			n++
		}
	}
	return n
}

// Conforms reports whether no case of the level MUST failed, nothing was blocked, nothing was or
// may be left behind, and everything was asked.
func (r Report) Conforms() bool {
	return r.Failures(Must) == 0 && r.Count(Blocked) == 0 && len(r.Left)+len(r.Unsure) == 0 && !r.Interrupted
}

// Progress says how far a run has come.
type Progress struct {
	// Doing says what is done before or after the cases; empty while cases run.
	Doing string
	// Result is the case that has just ended; nil if Doing is set.
	Result      *Result
	Done, Total int
}

// ErrUnusable says that a broker cannot be asked at all.
var ErrUnusable = errors.New("the broker cannot be checked")

// Run asks a broker. It returns an error, which is ErrUnusable, only if the broker cannot be asked
// at all: the report says what is wrong with its answers. When the context ends, Run begins no more
// cases, and removes everything that was made before it returns.
func Run(ctx context.Context, target Target, o Options) (Report, error) {
	began := o.Now()
	r, err := newRunner(target, o)
	if err != nil {
		return Report{}, err
	}
	cases := r.chosen()
	if len(cases) == 0 {
		return Report{}, fmt.Errorf("%w: no case is left by what was chosen", ErrUnusable)
	}
	if r.know = o.Known; r.know == nil {
		r.observe(Progress{Doing: "reading the catalog, and trying what each plan can do", Total: len(cases)})
		r.know, err = r.learn(ctx)
		if err != nil {
			r.sweep(ctx)
			return Report{}, err
		}
	}
	r.unpaged.Store(!r.know.pages)
	results := r.ask(ctx, cases)
	r.observe(Progress{Doing: "removing what was made", Done: len(cases), Total: len(cases)})
	r.sweep(ctx)
	report := Report{URL: r.base.Redacted(), Minor: r.Minor, Hazards: r.know.hazards(r.Minor), Interrupted: ctx.Err() != nil}
	report.Left, report.Unsure = r.left()
	report.Results = append(r.know.results(r), r.judged(cases, results)...)
	report.Duration = o.Now().Sub(began)
	return report, nil
}

// Learn finds out what the plans of a broker can do, for later runs.
func Learn(ctx context.Context, target Target, o Options) (*Knowledge, error) {
	r, err := newRunner(target, o)
	if err != nil {
		return nil, err
	}
	defer r.sweep(ctx)
	return r.learn(ctx)
}

// A runner is the state that the cases of one run share.
type runner struct {
	Options
	target Target
	base   *url.URL
	client *http.Client
	know   *Knowledge

	unpaged   atomic.Bool // the broker never answers with a page: see Knowledge.pages
	observing sync.Mutex
	done      int
	secrets   secrets
	ledger    ledger
	watch     watch
}

func newRunner(target Target, o Options) (*runner, error) {
	base, err := url.Parse(strings.TrimRight(target.URL, "/"))
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("%w: its URL is not one that begins with http:// or https://", ErrUnusable)
	case base.User != nil:
		return nil, fmt.Errorf("%w: give the credentials apart from the URL", ErrUnusable)
	}
	o.Parallel, o.Minor = cmp.Or(o.Parallel, parallel), o.minor()
	o.OperationTimeout = cmp.Or(o.OperationTimeout, defaultWait)
	client := &http.Client{}
	if o.Client != nil {
		*client = *o.Client
	}
	if client.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 64
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r := &runner{Options: o, target: target, base: base, client: client}
	r.secrets.add(target.Password, true)
	r.secrets.add(strings.TrimPrefix(login(target.Username, target.Password), "Basic "), true) // as the broker is told it
	return r, nil
}

func (r *runner) observe(p Progress) {
	if r.Observe == nil {
		return
	}
	r.observing.Lock()
	defer r.observing.Unlock()
	r.Observe(p)
}

// ask runs the cases, a few at a time. Cases for which no time is left have no outcome.
func (r *runner) ask(ctx context.Context, cases []Case) []Result {
	results := make([]Result, len(cases))
	next := make(chan int)
	var running sync.WaitGroup
	for range r.Parallel {
		running.Go(func() {
			for n := range next {
				results[n] = r.play(ctx, cases[n])
				r.observing.Lock()
				r.done++
				done := r.done
				r.observing.Unlock()
				r.observe(Progress{Result: &results[n], Done: done, Total: len(cases)})
			}
		})
	}
feeding:
	for n := range cases {
		select {
		case <-ctx.Done():
			break feeding
		case next <- n:
		}
	}
	close(next)
	running.Wait()
	return results
}

// judged returns the results together with what was observed on the way: some rules hold for every
// answer, whichever case received it.
func (r *runner) judged(cases []Case, results []Result) []Result {
	var out []Result
	for n, result := range results {
		if result.Outcome == 0 {
			continue
		}
		if _, known := cases[n].At(r.Minor); known && cases[n].watched {
			if seen := r.watch.of(result.ID); len(seen) > 0 {
				result.Outcome, result.Failures = Failed, append(result.Failures, seen...)
			}
		}
		out = append(out, result)
	}
	return out
}
