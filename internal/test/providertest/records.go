package providertest

import (
	"sync"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// records are what a worker remembers between steps: it commits what a step
// answered before the next one runs.
type records struct {
	target provider.Target // what a new instance is told
	mu     sync.Mutex
	of     map[provider.Tags]record
	epochs map[string]target.Epoch // by the targets' identities
}

type record struct {
	target provider.Target
	state  provider.State
	// done is the operation that was done last, and given the state that its
	// last step was given: it is repeated with that, as when its answer was
	// lost before it could be recorded.
	done  string
	given provider.State
}

// instance is the request as a worker makes it.
func (r *records) instance(in provider.Instance) provider.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tell(in)
}

func (r *records) tell(in provider.Instance) provider.Instance {
	tags := provider.TagsOf(in)
	at, ok := r.of[tags]
	in.Target, in.State = at.target, at.stateFor(in.Operation.ID)
	if !ok {
		in.Target = r.target
	}
	in.Epoch = r.epochs[in.Target.Identity]
	return in
}

// binding is the same for a binding: it reads the state of its instance.
func (r *records) binding(b provider.Binding) provider.Binding {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.Instance = r.tell(b.Instance)
	at, ok := r.of[provider.BindingTagsOf(b)]
	b.State = at.stateFor(b.Instance.Operation.ID)
	if ok && b.Instance.Target.Identity == "" {
		b.Instance.Target = at.target
	}
	b.Instance.Epoch = r.epochs[b.Instance.Target.Identity]
	return b
}

func (at record) stateFor(operation string) provider.State {
	if at.done == operation {
		return at.given
	}
	return at.state
}

// put records what a step answered that was given a state and a target.
func (r *records) put(
	tags provider.Tags, operation string, given provider.State, target provider.Target, st provider.Status, f *provider.Failure,
) provider.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := record{target: target, state: given, done: r.of[tags].done, given: r.of[tags].given}
	switch {
	case at.done == operation && f == nil && st.Done: // what it answered is on record
		return r.of[tags].state
	case at.done == operation: // others have come in between, and it begins again
		at.done = ""
	}
	switch {
	case f != nil && f.State != nil:
		at.state = *f.State
	case f == nil && st.State != nil:
		at.state = *st.State
	}
	if f == nil && st.Target != nil {
		at.target = *st.Target
	}
	if f == nil && st.Done {
		at.done, at.given = operation, given
	}
	r.of[tags] = at
	return at.state
}

// copied has one thing's target and state be on record of another, which it becomes.
func (r *records) copied(from, to provider.Tags) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[to] = record{target: r.of[from].target, state: r.of[from].state}
}

// forget drops all records; found makes one of what an inventory lists, as the
// deletion of an orphan begins with.
func (r *records) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.of)
	clear(r.epochs)
}

func (r *records) found(h provider.Holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[h.Tags] = record{target: h.Target, state: h.State}
}
