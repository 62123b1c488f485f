// Package pagestest is a table of instances in every state that a page shows, with its pages:
// for tests that look at them in a browser.
package pagestest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/memory"
)

// Epoch is the time of the table.
var Epoch = time.Date(2031, 3, 4, 9, 30, 0, 0, time.UTC)

// A Stage holds the instances, by the names of their scenes.
type Stage struct {
	Server *pages.Server
	Scenes []string

	t       testing.TB
	records *ledger.Ledger
	data    *datakey.Vault
	ids     int
}

// Samples show how to connect to the engine of the instances.
var Samples = map[string][]pages.Sample{"postgres": {
	{Name: "psql", Code: `psql "$DATABASE_URL"`},
	{Name: "Go", Code: `pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))`},
}}

// Plans is a catalog of one offering, of whose plans the small one can be looked up.
type Plans struct{}

// Plan implements pages.Plans.
func (Plans) Plan(serviceID, planID string) (catalog.Offering, catalog.Plan, bool) {
	small := catalog.Plan{
		ID: "p-small", Name: "small", Description: "1 GB of storage, on a shared server.",
		Metadata:        json.RawMessage(`{"costs":[{"amount":{"usd":12.5,"eur":11},"unit":"MONTHLY"}]}`),
		MaintenanceInfo: &catalog.MaintenanceInfo{Version: "2.0.0", Description: "PostgreSQL 18."},
	}
	o := catalog.Offering{ID: "s-pg", Name: "postgresql", Description: "A PostgreSQL database.",
		Plans: []catalog.Plan{small, {ID: "p-large", Name: "large"}}}
	if serviceID != o.ID || planID != small.ID {
		return catalog.Offering{}, catalog.Plan{}, false
	}
	return o, small, true
}

// LinksAlone is the sign-on of platforms that have no login: only links open sessions.
var LinksAlone = &pages.SignOn{Registry: func() platforms.Registry { return platforms.Registry{} },
	Callback: func(context.Context) string { return "" }}

// New makes the stage.
func New(t testing.TB) *Stage {
	t.Helper()
	s := &Stage{t: t}
	s.records = ledger.New(memory.New(), s.id)
	sealing, err := vault.NewLocal(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	s.data = datakey.New(s.records, sealing)
	s.Server = pages.New(pages.Options{
		Records: s.records, Plans: Plans{}, Samples: Samples, Table: s.data, SignOn: LinksAlone,
		Now:     func() time.Time { return Epoch },
		Inquire: func(context.Context, workflow.Inquiry) error { return nil },
		Log:     slog.New(slog.DiscardHandler),
		Console: Console(s.records, func() time.Time { return Epoch }, s.id, func(workflow.Ref) {}),
	})
	s.ready()
	s.running("creating", lifecycle.Creating, operation.Provision)
	s.failing("create-failed", lifecycle.CreateFailed, operation.Provision)
	s.failing("delete-failed", lifecycle.DeleteFailed, operation.Deprovision)
	s.instance("empty", func(r *lifecycle.Record) { r.Attributes = lifecycle.Attributes{} })
	s.long()
	s.operators()
	return s
}

func (s *Stage) id() string { s.ids++; return fmt.Sprintf("%022d", s.ids) }

// Key is the instance of a scene.
func (s *Stage) Key(scene string) lifecycle.Key {
	return lifecycle.Key{Platform: "cf", Instance: scene}
}

// Enter is the path of a new link to the instance of a scene, which may act.
func (s *Stage) Enter(scene string) string {
	of := pages.ScopeOf(s.Key(scene))
	of.Acts = true
	return s.enter(of)
}

func (s *Stage) enter(of pages.Scope) string {
	s.t.Helper()
	s.ids++
	link := pages.Link{Scope: of, ID: fmt.Sprint("link-", s.ids), Until: Epoch.Add(pages.LinkTime)}
	sealed, err := link.Seal(s.t.Context(), s.data)
	if err != nil {
		s.t.Fatal(err)
	}
	return pages.EnterPath(sealed)
}

func (s *Stage) put(changes ...ledger.Change) {
	s.t.Helper()
	if err := s.records.Commit(s.t.Context(), changes...); err != nil {
		s.t.Fatal(err)
	}
}

// instance records an instance, named after its scene.
func (s *Stage) instance(scene string, change func(*lifecycle.Record)) {
	s.t.Helper()
	s.Scenes = append(s.Scenes, scene)
	k := s.Key(scene)
	names, err := s.data.Seal(s.t.Context(), vault.Label{Key: k, Member: vault.Names}, fmt.Appendf(nil,
		`{"platform":"cloudfoundry","instance_name":%q,"organization_name":"shop","space_name":"live"}`, "orders-"+scene))
	if err != nil {
		s.t.Fatal(err)
	}
	r := lifecycle.Record{
		Key: k, State: lifecycle.Ready, Incarnation: "first", Provider: "postgres", Created: Epoch.Add(-50 * time.Hour),
		Attributes: lifecycle.Attributes{
			ServiceID: "s-pg", PlanID: "p-small", MaintenanceVersion: "1.0.0", Names: names,
			Snapshot: json.RawMessage(`{"retain_days":7}`),
		},
	}
	change(&r)
	s.put(ledger.Put(r))
}

func (s *Stage) binding(k lifecycle.Key, n int, app string) {
	s.t.Helper()
	s.put(ledger.Put(lifecycle.Record{
		Key: k.BindingKey(fmt.Sprintf("0e41a7a0-76e1-4f9c-8f0e-%012d", n)), State: lifecycle.Ready,
		Created: Epoch.Add(-time.Duration(n+1) * 7 * time.Hour),
		BindingOnly: lifecycle.BindingOnly{AppGUID: app, ExpiresAt: Epoch.Add(time.Duration(2-n) * 36 * time.Hour),
			RenewBefore: Epoch.Add(time.Duration(1-n) * 36 * time.Hour)},
	}))
}

// ready has bindings and a history with a failure.
func (s *Stage) ready() {
	s.instance("ready", func(r *lifecycle.Record) {
		r.Operation = &lifecycle.Operation{
			ID: "op", Kind: operation.Update, Phase: lifecycle.Failed,
			Description: "The server has no room for a database of this size.",
		}
	})
	k := s.Key("ready")
	s.facts("ready", "lsd.databases.example.com:5432")
	for n := range 3 {
		s.binding(k, n, fmt.Sprintf("7c9b1d52-1b8e-4a1f-9d0a-%012d", n))
	}
	for _, e := range []lifecycle.Entry{
		{Key: k, Incarnation: "first", ID: "1", Kind: operation.Provision, Phase: lifecycle.Succeeded,
			Started: Epoch.Add(-50*time.Hour - 3*time.Minute),
			Ended:   Epoch.Add(-50 * time.Hour), PlanID: "p-small", Parameters: []string{"size", "version"}},
		{Key: k, Incarnation: "first", ID: "2", Kind: operation.Bind, Phase: lifecycle.Succeeded,
			Ended:   Epoch.Add(-7 * time.Hour),
			AppGUID: "7c9b1d52-1b8e-4a1f-9d0a-000000000000"},
		{Key: k, Incarnation: "first", ID: "3", Kind: operation.Update, Phase: lifecycle.Failed,
			Started: Epoch.Add(-2*time.Hour - 20*time.Second),
			Ended:   Epoch.Add(-2 * time.Hour), Parameters: []string{"size"},
			Description: "The server has no room for a database of this size."},
	} {
		s.put(ledger.Put(e))
	}
}

func (s *Stage) running(scene string, state lifecycle.State, kind lifecycle.Kind) {
	s.instance(scene, func(r *lifecycle.Record) {
		r.State = state
		r.Operation = &lifecycle.Operation{
			ID: "op", Kind: kind, Phase: lifecycle.InProgress, Percent: 40, Description: "Making the database.",
			Started: Epoch.Add(-90 * time.Second), Deadline: Epoch.Add(24 * time.Hour), Expected: 5 * time.Minute, Attempt: 1,
		}
	})
}

func (s *Stage) failing(scene string, state lifecycle.State, kind lifecycle.Kind) {
	s.instance(scene, func(r *lifecycle.Record) {
		r.State = state
		r.Operation = &lifecycle.Operation{ID: "op", Kind: kind, Phase: lifecycle.Failed,
			Description: "The server does not answer."}
	})
}

// facts are those of a scene's instance, a moment ago.
func (s *Stage) facts(scene, address string) {
	size, connections := int64(734<<20), int64(7)
	s.put(ledger.Put(ledger.Facts{Key: s.Key(scene), Incarnation: "first", Asked: Epoch.Add(-30 * time.Second),
		Answered: Epoch.Add(-29 * time.Second), Facts: provider.Facts{
			Engine: "PostgreSQL 18.1", Address: address, Region: "eu-central-1", Size: &size, SizeLimit: 1 << 30,
			Connections: &connections, ConnectionLimit: 20, LastBackup: Epoch.Add(-6 * time.Hour),
			Maintenance: "Sundays, 03:00 to 04:00 UTC", Console: "https://console.example.com/" + address,
		}}))
}

// long has as much as a page shows, in words without a space.
func (s *Stage) long() {
	word := strings.Repeat("Donaudampfschifffahrtsgesellschaft", 20)
	s.instance("long", func(r *lifecycle.Record) {
		r.Operation = &lifecycle.Operation{ID: "op", Kind: operation.Update, Phase: lifecycle.Failed, Description: word}
	})
	k := s.Key("long")
	s.facts("long", word)
	for n := range 25 {
		s.binding(k, n, word)
		s.put(ledger.Put(lifecycle.Entry{
			Key: k, Incarnation: "first", ID: fmt.Sprint(n), Kind: operation.Update, Phase: lifecycle.Failed,
			Ended:       Epoch.Add(-time.Duration(n) * time.Hour),
			Description: word, Parameters: []string{word}, AppGUID: word,
		}))
	}
}

// Finish has the operation of a scene succeed.
func (s *Stage) Finish(scene string) {
	s.t.Helper()
	r, err := s.records.Record(s.t.Context(), s.Key(scene), Epoch)
	if err != nil {
		s.t.Fatal(err)
	}
	done, err := r.Succeed(Epoch, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(ledger.Put(done))
}
