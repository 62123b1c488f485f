package example

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A service is what the provider stands on: one account.
type service struct {
	account string
	mu      sync.Mutex
	things  map[string]thing
	keys    map[string]map[string]string // secrets by ids, by the names of users
	serial  int
	routes  *http.ServeMux
}

const pageSize = 3

func newService(account string) *service {
	s := &service{account: account, things: map[string]thing{}, keys: map[string]map[string]string{}}
	s.routes = s.mux()
	return s
}

// ServeHTTP makes each change whole or not at all.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes.ServeHTTP(w, r)
}

func (s *service) mux() *http.ServeMux {
	m := http.NewServeMux()
	answer := func(w http.ResponseWriter, body any) { _ = json.NewEncoder(w).Encode(body) }
	m.HandleFunc("GET /account", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.account) })
	m.HandleFunc("GET /things", func(w http.ResponseWriter, r *http.Request) {
		answer(w, s.page(r.FormValue("broker"), r.FormValue("after")))
	})
	put := func(w http.ResponseWriter, r *http.Request) {
		s.change(w, r, func(t thing) {
			s.serial++
			t.Version = s.serial
			s.things[t.Name] = t
		})
	}
	m.HandleFunc("POST /things", put)
	m.HandleFunc("PUT /things/{name}", put)
	m.HandleFunc("GET /things/{name}", func(w http.ResponseWriter, r *http.Request) {
		if t, ok := s.things[r.PathValue("name")]; ok {
			answer(w, t)
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	m.HandleFunc("DELETE /things/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.change(w, r, func(t thing) {
			delete(s.things, t.Name)
			delete(s.keys, t.Name)
		})
	})
	m.HandleFunc("POST /things/{name}/keys", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if _, ok := s.things[name]; !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if s.keys[name] == nil {
			s.keys[name] = map[string]string{}
		}
		s.serial++
		made := Key{ID: fmt.Sprintf("key-%d", s.serial), Secret: fmt.Sprintf("chosen by the service: %d", s.serial)}
		s.keys[name][made.ID] = made.Secret
		answer(w, made)
	})
	m.HandleFunc("GET /things/{name}/keys", func(w http.ResponseWriter, r *http.Request) {
		answer(w, slices.Sorted(maps.Keys(s.keys[r.PathValue("name")])))
	})
	m.HandleFunc("DELETE /things/{name}/keys/{id}", func(w http.ResponseWriter, r *http.Request) {
		delete(s.keys[r.PathValue("name")], r.PathValue("id"))
		answer(w, nil)
	})
	m.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		var k Key
		_ = json.NewDecoder(r.Body).Decode(&k)
		answer(w, s.opens(k))
	})
	return m
}

// change makes a change of a thing that stands at the version that the request names: 0
// for none.
func (s *service) change(w http.ResponseWriter, r *http.Request, do func(thing)) {
	var t thing
	status := http.StatusOK
	switch err := json.NewDecoder(r.Body).Decode(&t); {
	case err != nil:
		status = http.StatusBadRequest
	case t.Project == "suspended":
		status = http.StatusForbidden
	case s.things[t.Name].Version != t.Version:
		status = http.StatusConflict
	default:
		do(t)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte("null"))
}

func (s *service) page(broker, after string) []thing {
	page := []thing{}
	for _, name := range slices.Sorted(maps.Keys(s.things)) {
		if t := s.things[name]; t.Tags.Broker == broker && name > after && len(page) < pageSize {
			page = append(page, t)
		}
	}
	return page
}

// opens reports whether a user of a box that is there has the key.
func (s *service) opens(k Key) bool {
	for name, secrets := range s.keys {
		user, there := s.things[name]
		_, on := s.things[thing{}.of(user.Tags.OfInstance()).Name]
		if there && on && k.Secret != "" && secrets[k.ID] == k.Secret {
			return true
		}
	}
	return false
}

// A way is the network between a provider and the service.
type way struct {
	service *service
	calls   *providertest.Calls
}

func (w way) RoundTrip(r *http.Request) (*http.Response, error) {
	out := httptest.NewRecorder()
	err := w.calls.Call(r.Context(), func() error {
		w.service.ServeHTTP(out, r.WithContext(context.WithoutCancel(r.Context())))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out.Result(), nil
}

func factory(t *testing.T) *providertest.Harness {
	here, elsewhere, calls := newService("account-1"), newService("account-2"), &providertest.Calls{}
	open := func(s *service, broker string) (provider.Provider, provider.Inventory) {
		p := &Provider{HTTP: &http.Client{Transport: way{s, calls}}, URL: "http://service.example.com", Broker: broker}
		return p, p
	}
	settings := func(project string) map[string]any { return map[string]any{"project": project} }
	h := &providertest.Harness{
		Broker: "broker-1", Clock: providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		Target:    provider.Target{Name: "main"},
		Elsewhere: func(testing.TB) (provider.Provider, provider.Inventory) { return open(elsewhere, "broker-1") },
		ServiceID: "service-1", PlanID: "plan-1", Settings: settings("one"),
		Parameters: providertest.Note,
		Fail:       func(testing.TB, operation.Kind) map[string]any { return settings("suspended") },
		Plant: func(_ testing.TB, at, owner provider.Tags) {
			here.serial++
			t := thing{Created: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), Version: here.serial}.of(at)
			t.Tags = owner
			here.things[t.Name] = t
		},
		Look: func(_ testing.TB, at provider.Tags) string {
			if t, ok := here.things[thing{}.of(at).Name]; ok {
				return fmt.Sprintf("%+v %s %s %s", t.Tags, t.Created, t.Plan, t.Settings)
			}
			return ""
		},
		Secrets: func(_ testing.TB, at provider.Tags) int { return len(here.keys[thing{}.of(at).Name]) },
		Opens: func(_ testing.TB, g *provider.Grant) bool {
			id, _ := g.Credentials["username"].(string)
			secret, _ := g.Credentials["password"].(string)
			return here.opens(Key{ID: id, Secret: secret})
		},
		Falter:   calls.Arm,
		Open:     func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) { return open(here, broker) },
		PageSize: pageSize,
	}
	h.Provider, h.Inventory = open(here, "broker-1")
	return h
}

func TestExample(t *testing.T) { providertest.Run(t, factory) }

// The example stays what docs/providers.md calls it.
func TestTheExampleIsShort(t *testing.T) {
	raw, err := os.ReadFile("provider.go")
	if lines := strings.Count(string(raw), "\n"); err != nil || lines > 170 {
		t.Errorf("the example has %d lines, want at most 170 (%v)", lines, err)
	}
}
