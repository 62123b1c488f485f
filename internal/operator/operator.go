// Package operator is what an operator may see and change of the records: list and show
// them, start an operation again, end one, read the reports of the reaper and lift its
// halt. It needs records, a way to start executions, and the vault to rebuild records.
// It shows no parameter, credential or identity of a user.
package operator

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/work/reaper"
)

// Options are what a Console is made of.
type Options struct {
	Records *ledger.Ledger
	// Start starts an execution of an operation; see workflow.Engine. Nil if no broker
	// runs: operations then wait until it is started.
	Start   func(ctx context.Context, ref workflow.Ref) error
	Catalog func(serviceID, planID string) (catalog.Offering, catalog.Plan, bool)
	// ServiceOf finds the offering of a plan.
	ServiceOf func(planID string) (serviceID string, found bool)
	// Platforms are the names of the platforms, by their ids.
	Platforms func(ctx context.Context) (map[string]string, error)
	// Names give the names of a thing on its server or in its account, by provider.
	Names map[string]func(provider.Tags) []string
	// Vault shows whether what is sealed in the records opens.
	Vault vault.Vault
	// Inventories list what exists, by the providers' names.
	Inventories map[string]provider.Inventory
	// Servers are the providers whose targets have epochs, by their names.
	Servers map[string]wired.Provider
	// Origin is where browsers reach the broker, as scheme and host; empty if it does not run.
	Origin string
	Now    func() time.Time
	NewID  func() string
	// Whose is the deployment and the broker of the table; see reaper.Resume.
	Whose ledger.Identity
	// OperationTimeout is the deadline of deletions that Retry begins.
	OperationTimeout time.Duration
	// Lost is told by Rebuild of each thing that is lost, as soon as it is; nil for nobody.
	Lost func(what string)
	// Damaged is what of the records was found damaged before a rebuild; see Rebuilt.
	Damaged []string
	// Rebuilt is called when a rebuild has come to its end; nil for nothing.
	Rebuilt func(ctx context.Context) error
}

// A Console is an operator's view.
type Console struct {
	Options
	datakey *datakey.Vault
}

// New makes a console.
func New(o Options) *Console { return &Console{o, datakey.New(o.Records, o.Vault)} }

// A Refusal says why nothing was done, and what to do.
type Refusal = acts.Refusal

func refuse(format string, args ...any) error { return acts.Refuse(format, args...) }

// acts does what is done to one record.
func (c *Console) acts() acts.Acts {
	return acts.Acts{Records: c.Records, Start: c.Start, Now: c.Now, NewID: c.NewID, OperationTimeout: c.OperationTimeout}
}

// did is what an act has led to.
func (c *Console) did(done acts.Done, err error) (Row, error) {
	if err != nil {
		return Row{}, err
	}
	row := c.row(done.Record)
	row.Note = cmp.Or(done.Note, row.Note)
	return row, nil
}

// drive commits what an operator asked for, and starts its execution.
func (c *Console) drive(ctx context.Context, act string, r lifecycle.Record, with ...ledger.Change) (Row, error) {
	return c.did(c.acts().Drive(ctx, act, r, with...))
}

// Retry starts a running operation again, or deletes what failed; see acts.Retry.
func (c *Console) Retry(ctx context.Context, token string) (Row, error) {
	return c.did(c.acts().Retry(ctx, token, 0))
}

// A Settlement says which operation is to end, by its token, and the Message for the
// platform's user.
type Settlement struct {
	Token   string `json:"token"`
	Message string `json:"message"`
}

// Settle ends a running operation as failed; see acts.Settle.
func (c *Console) Settle(ctx context.Context, s Settlement) (Row, error) {
	return c.did(c.acts().Settle(ctx, s.Token, s.Message))
}

// A Reaper is what the reaper found and did.
type Reaper struct {
	// Inventory is how far its inventory has come, and whether it has halted.
	Inventory ledger.Inventory `json:"inventory"`
	Reports   []ledger.Report  `json:"reports"` // the oldest first
}

// Report tells what the reaper found and did. The error tells what could not be read; the
// rest is told.
func (c *Console) Report(ctx context.Context) (r Reaper, _ error) {
	var unread, others error
	r.Inventory, unread = c.Records.Inventory(ctx)
	r.Reports, others = c.Records.Reports(ctx, time.Time{})
	r.Reports = append([]ledger.Report{}, r.Reports...) // no null for whoever reads JSON
	return r, errors.Join(unread, others)
}

// Resume lifts the reaper's halt.
func (c *Console) Resume(ctx context.Context) (None, error) {
	return None{}, reaper.Resume(ctx, c.Records, c.Whose, c.Now())
}
