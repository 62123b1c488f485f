package providertest_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/providertest"
)

const (
	work     = 3 * time.Second // how long asynchronous work takes in memory
	pageSize = 3
)

// A memory is a provider in memory: the simplest that passes the suite. With a
// fault it is a mutant, which must not pass.
type memory struct {
	fault  string
	broker string
	calls  *providertest.Calls
	w      *world
	clock  *providertest.Clock
	jobs   map[string]*job // of the mutant that keeps them to itself
}

// A world is what a memory stands on. Each verb reaches it by one call.
type world struct {
	mu        sync.Mutex
	things    map[string]*thing
	passwords map[string]bool // all that there ever were
	calls     int
}

type thing struct {
	tags     provider.Tags
	created  time.Time
	config   string
	password string
	usable   bool
	jobs     map[string]*job
}

type job struct {
	ends  time.Time
	fails bool
}

// A wish is a verb in a form that fits them all.
type wish struct {
	role     string
	tags     provider.Tags
	op       provider.Operation
	settings map[string]any
	config   string
	password string
	secret   string
	looked   bool // there was nothing before the call
}

func (m *memory) instance(in provider.Instance) wish {
	return wish{role: "instance", tags: provider.TagsOf(in), op: in.Operation, settings: in.Settings,
		config: in.PlanID + string(in.Parameters), secret: string(in.Parameters)}
}

func (m *memory) binding(b provider.Binding) wish {
	w := wish{role: "binding", tags: provider.BindingTagsOf(b), op: b.Instance.Operation, settings: b.Instance.Settings,
		config: string(b.Parameters), secret: hex.EncodeToString(b.Secret)}
	mac := hmac.New(sha256.New, b.Secret)
	mac.Write([]byte(m.name(w)))
	w.password = hex.EncodeToString(mac.Sum(nil))
	if m.fault == "shared-credentials" {
		w.password = "password of " + b.Instance.ID
	}
	return w
}

func (m *memory) name(w wish) string {
	t := w.tags
	switch m.fault {
	case "joined-ids":
		return w.role + t.Platform + t.Instance + t.Binding
	case "no-platform":
		t.Platform = ""
	case "one-life", "forgets-incarnation":
		t.Incarnation, t.Of = "", ""
	}
	return provider.Name("memory", w.role, t)
}

// reach is one call to the world.
func (m *memory) reach(ctx context.Context, do func() (provider.Status, error)) (st provider.Status, err error) {
	if m.fault == "ignores-cancelling" {
		ctx = context.WithoutCancel(ctx)
	}
	call := m.calls.Call(ctx, func() error {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		m.w.calls++
		st, err = do()
		return nil
	})
	switch {
	case call == nil:
		return st, err
	case m.fault == "fails-by-fault" && ctx.Err() == nil:
		return provider.Status{}, provider.Failf("fault")
	default:
		return provider.Status{}, call
	}
}

func (m *memory) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if m.fault == "changes-input" {
		in.Settings["seen"] = in.Operation.ID
	}
	w := m.instance(in)
	m.w.mu.Lock()
	w.looked = m.w.things[m.name(w)] == nil // what only the mutant goes by
	m.w.mu.Unlock()
	return m.reach(ctx, func() (provider.Status, error) { return m.create(w) })
}

func (m *memory) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return m.reach(ctx, func() (provider.Status, error) {
		w := m.instance(in)
		t, f := m.owner(in)
		if f != nil {
			if m.fault == "update-creates" {
				return m.create(w)
			}
			return provider.Status{}, f
		}
		return m.work(t, w, func() { t.config = w.config })
	})
}

func (m *memory) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return m.reach(ctx, func() (provider.Status, error) { return m.remove(m.instance(in)) })
}

func (m *memory) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return m.reach(ctx, func() (provider.Status, error) {
		if _, f := m.owner(b.Instance); f != nil {
			return provider.Status{}, f
		}
		w := m.binding(b)
		st, err := m.create(w)
		if m.fault == "tells-secret" {
			st.Description += w.secret
		}
		if st.Done && err == nil {
			if m.fault == "random-password" {
				w.password += fmt.Sprint(m.w.calls)
			}
			m.w.passwords[w.password] = true
			st.Grant = &provider.Grant{Credentials: map[string]any{"username": m.name(w), "password": w.password}}
		}
		return st, err
	})
}

func (m *memory) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return m.reach(ctx, func() (provider.Status, error) {
		st, err := m.remove(m.binding(b))
		if st.Done && m.fault == "unbinds-all" {
			maps.DeleteFunc(m.w.things, func(_ string, t *thing) bool {
				return t.tags.Instance == b.Instance.ID && t.tags.Binding != ""
			})
		}
		return st, err
	})
}

func (m *memory) Describe(ctx context.Context, in provider.Instance) (facts provider.Facts, err error) {
	_, err = m.reach(ctx, func() (provider.Status, error) {
		if t := m.w.things[m.name(m.instance(in))]; t != nil && m.fault == "describes-foreign" {
			facts.Address = t.tags.Instance
			return provider.Status{}, nil
		}
		t, f := m.owner(in)
		if f != nil {
			return provider.Status{}, f
		}
		facts.Address = t.tags.Instance
		return provider.Status{}, nil
	})
	return facts, err
}

// owner is the instance's thing, if it can be used.
func (m *memory) owner(in provider.Instance) (*thing, *provider.Failure) {
	t := m.w.things[m.name(m.instance(in))]
	if t == nil || t.tags != provider.TagsOf(in) || !t.usable {
		return nil, provider.Failf("there is no such instance")
	}
	return t, nil
}

func (m *memory) create(w wish) (provider.Status, error) {
	name := m.name(w)
	t := m.w.things[name]
	if t != nil && t.tags != w.tags {
		if m.fault == "adopts-foreign" || m.fault == "forgets-incarnation" {
			return provider.Status{Done: true}, nil
		}
		return provider.Status{}, provider.Failf("the name is taken")
	}
	if t != nil && t.usable && m.fault == "exists-is-failure" {
		return provider.Status{}, provider.Failf("it exists already")
	}
	if t != nil && w.looked && m.fault == "looks-then-makes" {
		t, name = nil, name+"-2"
	}
	if t == nil {
		t = &thing{tags: w.tags, created: m.clock.Now(), config: w.config, password: w.password, jobs: map[string]*job{}}
		m.w.things[name] = t
	}
	return m.work(t, w, func() { t.usable = true })
}

func (m *memory) remove(w wish) (provider.Status, error) {
	name := m.name(w)
	t := m.w.things[name]
	switch {
	case t == nil && m.fault == "absent-is-failure":
		return provider.Status{}, provider.Failf("there is no such thing")
	case t == nil:
		return provider.Status{Done: true}, nil
	case t.tags != w.tags && m.fault != "deletes-foreign" && m.fault != "forgets-incarnation":
		return provider.Status{}, provider.Failf("the name is taken")
	case !t.usable && m.fault == "leaves-half-made":
		return provider.Status{Done: true}, nil
	}
	st, err := m.work(t, w, func() { delete(m.w.things, name) })
	if err == nil && m.fault == "done-too-early" {
		st = provider.Status{Done: true}
	}
	return st, err
}

// work goes on with an operation on t; apply is what it does in the end.
func (m *memory) work(t *thing, w wish, apply func()) (provider.Status, error) {
	now := m.clock.Now()
	jobs := t.jobs
	if m.fault == "forgets-at-restart" {
		jobs = m.jobs
	}
	j := jobs[w.op.ID]
	if j == nil {
		j = &job{ends: now, fails: w.settings["fail"] == w.op.Kind}
		if !w.op.Synchronous {
			j.ends = now.Add(work)
		}
		jobs[w.op.ID] = j
	}
	if left := j.ends.Sub(now); left > 0 {
		return provider.Status{Percent: 50, Description: "working", After: time.Second}, nil
	}
	if j.fails {
		switch m.fault {
		case "failure-is-not-final":
			j.fails = false
		case "failed-update-counts":
			apply()
		case "tells-parameters":
			return provider.Status{}, provider.Failf("cannot use %s", w.secret)
		}
		return provider.Status{}, provider.Failf("asked to fail")
	}
	apply()
	return provider.Status{Done: true, Percent: 100}, nil
}

func (m *memory) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	names := slices.Sorted(maps.Keys(m.w.things))
	names = slices.DeleteFunc(names, func(n string) bool { return n <= cursor })
	next := ""
	if len(names) > pageSize {
		names = names[:pageSize]
		next = names[pageSize-1]
	}
	if m.fault == "loses-pages" {
		next = ""
	}
	var page []provider.Holding
	for _, n := range names {
		if t := m.w.things[n]; t.tags.Broker == m.broker && (t.usable || m.fault != "hides-half-made") {
			page = append(page, provider.Holding{Name: n, Tags: t.tags, Created: t.created})
		}
	}
	return page, next, nil
}

// memoryFactory makes harnesses over memory, with a fault or soundly.
func memoryFactory(fault string) providertest.Factory {
	return func(t *testing.T) *providertest.Harness {
		clock := providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		w := &world{things: map[string]*thing{}, passwords: map[string]bool{}}
		reopen := func(broker string) *memory {
			return &memory{fault: fault, broker: broker, calls: &providertest.Calls{}, w: w, clock: clock, jobs: map[string]*job{}}
		}
		m := reopen("broker-1")
		name := func(tags provider.Tags) string {
			return m.name(wish{role: cmp.Or(map[bool]string{true: "binding"}[tags.Binding != ""], "instance"), tags: tags})
		}
		return &providertest.Harness{
			Provider:  m,
			Inventory: m,
			Broker:    "broker-1",
			Clock:     clock,
			ServiceID: "service-1",
			PlanID:    "plan-1",
			Settings:  map[string]any{"size": "small"},
			Parameters: func(canary string) json.RawMessage {
				return json.RawMessage(fmt.Sprintf(`{"note":%q}`, canary))
			},
			Fail: func(_ testing.TB, kind operation.Kind) map[string]any { return map[string]any{"fail": kind} },
			Plant: func(_ testing.TB, at, owner provider.Tags) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.things[name(at)] = &thing{tags: owner, created: clock.Now(), usable: true, jobs: map[string]*job{}}
			},
			Look: func(_ testing.TB, at provider.Tags) string {
				w.mu.Lock()
				defer w.mu.Unlock()
				if t := w.things[name(at)]; t != nil {
					return fmt.Sprintf("%+v %s", t.tags, t.config)
				}
				return ""
			},
			Opens: func(_ testing.TB, g *provider.Grant) bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				user, _ := g.Credentials["username"].(string)
				password, _ := g.Credentials["password"].(string)
				if fault == "keeps-open" {
					return w.passwords[password]
				}
				t := w.things[user]
				return t != nil && t.usable && t.password == password
			},
			Secrets: func(_ testing.TB, at provider.Tags) int {
				w.mu.Lock()
				defer w.mu.Unlock()
				if t := w.things[name(at)]; t != nil && t.usable && t.password != "" {
					return 1
				}
				return 0
			},
			Falter: m.calls.Arm,
			Open: func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) {
				m := reopen(broker)
				return m, m
			},
			PageSize: pageSize,
		}
	}
}
