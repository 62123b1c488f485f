package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// silent exempts a request from the rules that hold for every answer.
func (q request) silent() request {
	q.quiet = true
	return q
}

// refused reports whether the broker does not support the subject of the case, which is optional:
// the case is then not applicable.
func (s *scene) refused(a response, what string, any ...int) bool {
	if !slices.Contains(any, a.status) {
		return false
	}
	s.lacking = fmt.Sprintf("the broker does not %s: %d", what, a.status)
	return true
}

// did sends a request, checks the answer, and waits for the end of an accepted operation.
func (s *scene) did(q request, w want, path string) bool {
	a, ok := s.send(q)
	return ok && s.checked(a, w) && s.done(a, path)
}

// nothingAt checks that a deletion finds nothing at the path of an instance or a binding. This
// proves nothing if the broker also accepts the deletion of something that never existed.
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

// taken reports whether the broker accepts what the case expects it to refuse, so that the rest of
// the case makes no sense. It is another case that fails for this.
func (s *scene) taken(a response, what string) bool {
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

// must sends a request that a starting point needs; any other status blocks the case.
func (s *scene) must(q request, any ...int) (response, bool) {
	a, ok := s.exchange(q)
	switch {
	case !ok:
		return a, s.block("%s: no answer: %s", a.request, a.fault)
	case !slices.Contains(any, a.status):
		s.noteAtOnce(a, any)
		return a, s.block("%s: want status %s, got %s", a.request, alternatives(any), a)
	}
	return a, true
}

// asked sends one request and checks the answer. It reads before and after a refused request what
// that must not change (ERR-08).
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

// send sends a request. If there is no answer, the case is blocked: that says nothing about the case's rule.
func (s *scene) send(q request) (response, bool) {
	a, ok := s.exchange(q)
	if !ok && s.ctx.Err() == nil {
		if a.slow {
			s.watch.add(s.runner, Failure{"PROV-32", a.request, "an answer within " + requestLimit.String(), a.fault})
		}
		s.block("%s: no answer: %s", a.request, a.fault)
	}
	return a, ok
}

// checked compares an answer with what is wanted. It returns false if the status differs, so that
// the following steps make no sense.
func (s *scene) checked(a response, w want) bool {
	code := text(a.body, "error")
	switch {
	case len(w.status) > 0 && !slices.Contains(w.status, a.status):
		s.noteAtOnce(a, w.status)
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

// noteAtOnce notes whether a request that should begin an operation was carried out at once
// instead. A broker that waits for fast work answers 202 only if the work was slow; for a plan that
// it serves only asynchronously, it must not do so.
func (s *scene) noteAtOnce(a response, wanted []int) {
	s.mu.Lock() // requests may run in parallel
	defer s.mu.Unlock()
	mayWait := s.plan != nil && !s.plan.asyncOnly && !s.plan.bindAsyncOnly
	s.atOnce = mayWait && s.running == "" && slices.Equal(wanted, []int{http.StatusAccepted}) &&
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
	// oddPolls is the number of invalid answers that end the polling.
	oddPolls = 3
)

// States of an operation.
const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
	gone       = "gone" // a name of this kit, for 410 and 404
)

// settle polls the operation that was accepted last until it ends, and returns its state, or a
// description of what came instead.
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
		switch state := text(a.body, "state"); {
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
			if odd++; odd == oddPolls { // platforms go on polling; a check need not for long
				return a.String()
			}
		}
		if !sleep(ctx, pause) {
			return "still in progress when the time was over"
		}
	}
}

// ends checks that the operation that was accepted last ends in one of the states.
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

// sleep returns false if the context ended first.
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

// A snapshot is the readable state of everything that a request could change, by path.
type snapshot map[string]string

// look reads the state of everything that was made, and of what the request names.
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
		if len(segments) == 4 && !s.plan.service.instancesRetrievable ||
			len(segments) == 6 && !s.plan.service.bindingsRetrievable {
			continue
		}
		if a, ok := s.exchange(get(path)); ok {
			seen[path] = fmt.Sprint(a.status)
			if a.status == http.StatusOK {
				kept := object{} // other members may be told only once, or differ in each answer
				for _, member := range []string{"service_id", "plan_id", "parameters", "maintenance_info"} {
					kept[member] = a.body[member]
				}
				seen[path] += " " + encode(kept)
			}
		}
	}
	return seen
}

// unchanged compares two snapshots. These may contain credentials, so only the statuses are reported.
func (s *scene) unchanged(a response, before, after snapshot) {
	for path, was := range before {
		if now, read := after[path]; read && now != was {
			s.watch.add(s.runner, Failure{"ERR-08", a.request, "nothing to change",
				fmt.Sprintf("%s, after which GET %s gives %.3s and not the same as before (%.3s)", a, path, now, was)})
		}
	}
}

// all runs n calls in parallel, and waits for all of them.
func (s *scene) all(n int, run func(n int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { run(i) })
	}
	group.Wait()
}
