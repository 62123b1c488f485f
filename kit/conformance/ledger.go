package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// A resource is an instance or a binding that may exist.
type resource struct {
	path, service, plan string
	minor               int
	// former is the plan before the last change, since that change may have failed.
	former string
	// made says that the broker reported success; unsure that the resource may exist all the same,
	// because the answer was lost, or was an error of the broker or of a gateway before it. busy
	// says that an operation on it was accepted.
	made, unsure, busy bool
	by                 string // the case that asked for it

	mu   sync.Mutex
	gone bool
	why  string // why it could not be removed
}

// A ledger remembers everything that a run asks to be made, from before the request is sent: the
// run may be interrupted at any time.
type ledger struct {
	mu    sync.Mutex
	made  []*resource
	going sync.WaitGroup
}

// later removes what one case has made, in the background.
func (l *ledger) later(work func()) { l.going.Go(work) }

// register records the resource that a request may make.
func (s *scene) register(a response) {
	segments := strings.Split(a.path, "/")
	if len(segments) != 4 && len(segments) != 6 || segments[1] != "v2" || segments[len(segments)-1] == "" {
		return
	}
	plan := text(a.content, "plan_id")
	service := text(a.content, "service_id")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.made {
		if r.path == a.path {
			return
		}
	}
	if a.method != http.MethodPut {
		return
	}
	r := &resource{path: a.path, service: service, plan: plan, minor: s.Minor, by: s.ID}
	if s.plan != nil {
		r.service, r.plan = s.plan.service.id, s.plan.id
	}
	if r.service == "" { // a missing hint must not prevent the removal
		r.service = "unknown"
	}
	if r.plan == "" {
		r.plan = "unknown"
	}
	s.made = append(s.made, r)
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.ledger.made = append(s.ledger.made, r)
}

// follow takes from an answer what the removal must know.
func (s *scene) follow(a response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.made {
		if r.path != a.path {
			continue
		}
		operation := a.status == http.StatusAccepted || a.body["operation"] != nil // also with a wrong status
		r.busy = r.busy || operation && a.method != http.MethodDelete
		switch plan := text(a.content, "plan_id"); {
		case a.method == http.MethodPut && a.fault == "" && a.status/100 == 2 && a.body != nil:
			r.made = true
		case a.method == http.MethodPut && !a.unmade():
			r.unsure = true
		case a.method == http.MethodPatch && a.status/100 == 2 && plan != "" && plan != r.plan:
			r.former, r.plan = r.plan, plan
		}
	}
}

func (r *resource) mayExist() bool { return r.made || r.unsure }

func (r *resource) ofBinding() bool { return strings.Contains(r.path, "/service_bindings/") }

// dispose removes what may exist, the bindings first. It waits for running operations: many brokers
// refuse to delete what is being made.
func (r *runner) dispose(ctx context.Context, made []*resource) {
	for _, m := range made {
		if m.busy {
			r.begin(ctx, Case{}, nil).poll(m.path + "/last_operation?" + m.hints())
		}
	}
	for _, bindings := range []bool{true, false} {
		for n := len(made) - 1; n >= 0; n-- {
			if made[n].ofBinding() == bindings {
				r.removeOne(ctx, made[n])
			}
		}
	}
}

// hints returns the query of a request about the resource.
func (r *resource) hints() string {
	return "service_id=" + url.QueryEscape(r.service) + "&plan_id=" + url.QueryEscape(r.plan)
}

// removals is how often a failing deletion is begun.
const removals = 3

func (r *runner) removeOne(ctx context.Context, made *resource) {
	made.mu.Lock()
	defer made.mu.Unlock()
	if made.gone {
		return
	}
	s := r.begin(ctx, Case{}, nil)
	wait, cancel := context.WithTimeout(ctx, r.OperationTimeout)
	defer cancel()
	tries := 0
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		hints := made.hints()
		a, ok := s.exchange(remove(made.path + async + "&" + hints).as(made.minor).silent())
		switch {
		case !ok:
			made.why = "DELETE had no answer: " + a.fault
			if tries++; tries == removals || s.ctx.Err() != nil || !made.mayExist() {
				return
			}
		case a.gone() || a.status == http.StatusOK && a.body != nil:
			made.gone = true
			return
		case a.status == http.StatusAccepted && a.body != nil:
			poll := made.path + "/last_operation?" + hints
			if token, ok := s.known("operation"); ok {
				poll += "&operation=" + url.QueryEscape(token)
			}
			state := s.poll(poll)
			if state == succeeded || state == gone {
				made.gone = true
				return
			}
			made.why = "its deletion ended: " + state
			if tries++; tries == removals {
				return
			}
		default:
			made.why = fmt.Sprintf("DELETE was answered %s", a)
			if made.gone = !made.mayExist(); made.gone {
				return
			}
			if a.status == http.StatusUnprocessableEntity && a.body["error"] == concurrencyError {
				break // wait for the running operation
			}
			if made.former != "" {
				made.plan, made.former = made.former, ""
			}
			if tries++; tries == removals {
				return
			}
		}
		if !sleep(wait, pause) {
			return
		}
	}
}

// sweep waits until everything that was made is removed, and then tries once more to remove what is
// left. It also does so if the run was interrupted.
func (r *runner) sweep(ctx context.Context) {
	r.ledger.going.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	for _, bindings := range []bool{true, false} {
		each(r.Parallel, r.ledger.made, func(made *resource) {
			if made.ofBinding() == bindings {
				r.removeOne(ctx, made)
			}
		})
	}
}

// left lists the resources that were made and could not be removed, with the reasons; and
// separately those that may have been made, since the broker's answer did not come.
func (r *runner) left() (made, unsure []string) {
	for _, m := range r.ledger.made {
		switch {
		case m.gone:
		case m.made:
			made = append(made, r.secrets.hide(m.path+" (made by "+m.by+"): "+m.why))
		case m.unsure:
			unsure = append(unsure, r.secrets.hide(m.path+" (asked for by "+m.by+"): "+m.why))
		}
	}
	return made, unsure
}
