package pagestest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// Console is the console over records, with two platforms. Started is told of each execution.
func Console(records *ledger.Ledger, now func() time.Time, id func() string, started func(workflow.Ref)) pages.Console {
	return pages.Console{
		Acts: acts.Acts{Records: records, Now: now, NewID: id, OperationTimeout: time.Hour,
			Start: func(_ context.Context, ref workflow.Ref) error { started(ref); return nil }},
		Offerings: func() []catalog.Offering {
			o, _, _ := Plans{}.Plan("s-pg", "p-small")
			o.Provider = "postgres"
			return []catalog.Offering{o}
		},
		Registry: func(context.Context) (platforms.Registry, error) {
			login := platforms.Credential{Username: "broker", Password: "canary-password"}
			old := []platforms.Previous{{Password: "canary-previous", Until: Epoch.Add(time.Hour)}}
			return platforms.Registry{Platforms: []platforms.Platform{
				{ID: "default", Name: "default", Credential: login},
				{ID: "cf", Name: "Production", Path: "/production", Credential: login, Previous: old,
					Since: Epoch.Add(-time.Hour), Offerings: []string{"postgresql"}},
			}}, nil
		},
	}
}

// ConsolePages are the console's pages, in the order of its navigation, and one of each act.
func (s *Stage) ConsolePages() map[string]string {
	return map[string]string{
		"overview": "overview", "instances": "instances", "instance": "instance?platform=cf&id=stuck",
		"long": "instance?platform=cf&id=long", "operations": "operations", "stuck": "operations?show=stuck",
		"failed": "operations?show=failed", "upgrades": "upgrades", "quarantine": "quarantine",
		"retained": "retained", "offerings": "offerings", "costs": "costs", "platforms": "platforms",
		"none":    "instances?plan=none",
		"settle":  "act?do=settle&token=" + s.token(s.Key("stuck")),
		"discard": "act?do=discard&token=" + s.token(s.Key("orphan").Former("first")),
	}
}

// EnterConsole is the path of a new link to the console, which may act.
func (s *Stage) EnterConsole() string { return s.enter(pages.Scope{Console: true, Acts: true}) }

func (s *Stage) token(k lifecycle.Key) string {
	s.t.Helper()
	r, err := s.records.Record(s.t.Context(), k, Epoch)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Token().String()
}

// operators adds what only operators see.
func (s *Stage) operators() {
	op := func(kind lifecycle.Kind, phase lifecycle.Phase) *lifecycle.Operation {
		s.ids++
		return &lifecycle.Operation{ID: fmt.Sprintf("%022d", s.ids), Kind: kind, Phase: phase, Attempt: 2,
			Started: Epoch.Add(-2 * time.Hour), Deadline: Epoch.Add(22 * time.Hour)}
	}
	s.instance("stuck", func(r *lifecycle.Record) {
		r.State, r.Operation, r.Due = lifecycle.Updating, op(operation.Update, lifecycle.InProgress), Epoch.Add(time.Minute)
		r.Operation.Trouble = "The server was restored: run `longshore reconcile` and say which of its databases are to stay."
		r.Operation.Faults = 7
		r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID = "8f8a1c0e-organization", "e7a4-space"
		r.Made.Target = lifecycle.Target{Name: "eu-1", Identity: "7391620183847364"}
	})
	s.instance("lost", func(r *lifecycle.Record) {
		r.State, r.Operation, r.Due = lifecycle.DeleteFailed, op(operation.Deprovision, lifecycle.Failed), Epoch.Add(24*time.Hour)
		r.Operation.Description = "The server postgres-eu-central-1.databases.internal.example.com does not answer."
	})
	for _, scene := range []string{"orphan", "kept"} {
		k, at := s.Key(scene).Former("first"), Epoch.Add(-26*time.Hour)
		r := lifecycle.Record{Key: k, State: lifecycle.Quarantined, Incarnation: "first", Provider: "postgres",
			Operation: op(operation.Quarantine, lifecycle.Succeeded), Due: Epoch.Add(12 * 24 * time.Hour),
			Kept: &lifecycle.Kept{Since: at, Until: at.Add(lifecycle.QuarantineTime),
				Name: "ls_" + strings.Repeat("orders", 12)},
			Attributes: lifecycle.Attributes{ServiceID: "s-pg", PlanID: "p-small"}}
		if scene == "kept" {
			r.Kept.Name = ""
		}
		s.put(ledger.Put(r))
	}
	s.put(ledger.PutReport(ledger.Report{Started: Epoch.Add(-20 * time.Minute), Ended: Epoch.Add(-19 * time.Minute),
		Counted: &ledger.Counted{Things: 1843, Owned: 1840, InQuarantine: 1, Retained: 12,
			Odd: []string{"postgres: ls_" + strings.Repeat("orders_", 6) + "1"}}}, "1"))
	s.put(ledger.PutReport(ledger.Report{Started: Epoch.Add(-time.Minute), Ended: Epoch.Add(-time.Minute),
		Swept: &ledger.Swept{Redriven: 2, Reclaimed: 1}}, "2"))
}
