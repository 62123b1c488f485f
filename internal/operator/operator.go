// Package operator is what an operator may see and change of the records: list and show
// them, start an operation again, end one, read the reports of the reaper and lift its
// halt. It needs records, a way to start executions, and the vault to rebuild records.
// It shows no parameter, credential or identity of a user.
package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
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
type Console struct{ Options }

// New makes a console.
func New(o Options) *Console { return &Console{Options: o} }

// A Refusal says why nothing was done, and what to do.
type Refusal struct{ Message string }

func (r *Refusal) Error() string { return r.Message }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// find reads the record that a token belongs to.
func (c *Console) find(ctx context.Context, token string) (t lifecycle.Token, r lifecycle.Record, err error) {
	if t, err = lifecycle.ParseToken(token); err != nil {
		return t, r, refuse("%q is no operation: `longshore operations` lists their tokens", token)
	}
	r, err = c.Records.Record(ctx, t.Key, c.Now())
	return t, r, err
}

// latest reads the record whose latest operation has the token, and refuses any other.
func (c *Console) latest(ctx context.Context, token string) (lifecycle.Record, error) {
	t, r, err := c.find(ctx, token)
	if err == nil && (r.Operation == nil || r.Operation.ID != t.Operation) {
		err = refuse("another operation has replaced this one, so that nothing was done: `longshore operations` lists the latest")
	}
	return r, err
}

// start begins an operation that an operator asks for.
func (c *Console) start(timeout time.Duration) lifecycle.Start {
	return lifecycle.Start{ID: c.NewID(), Now: c.Now(), Timeout: timeout, Own: true}
}

// Retry starts a running operation again, as a new attempt. If a creation or a deletion
// has failed, it begins the deletion. Until the platform deletes a failed creation, it
// is told that the creation has failed (PROV-30).
func (c *Console) Retry(ctx context.Context, token string) (Row, error) {
	return decide(ctx, func() (Row, error) { return c.retry(ctx, token) })
}

func (c *Console) retry(ctx context.Context, token string) (Row, error) {
	r, err := c.latest(ctx, token)
	if err != nil {
		return Row{}, err
	}
	r, past, err := r.Restarted(c.start(c.OperationTimeout))
	if errors.As(err, new(*lifecycle.IllegalTransition)) {
		err = refuse("the %s is %q: only a running operation can be started again; what failed to be created or deleted can be deleted",
			r.Noun(), r.State)
	}
	if err != nil {
		return Row{}, err
	}
	return c.drive(ctx, "retry", r, ledger.PutPast(past))
}

// drive commits what an operator asked for, and starts its execution.
func (c *Console) drive(ctx context.Context, act string, r lifecycle.Record, with ...ledger.Change) (Row, error) {
	row := c.row(r)
	if err := c.Records.Commit(ctx, append(with, ledger.Put(r), c.acted(act, r))...); err != nil {
		return Row{}, err
	}
	if c.Start == nil {
		row.Note = "goes on when the broker is started"
		return row, nil
	}
	if err := c.Start(ctx, workflow.Of(r)); err != nil {
		row.Note = "could not be started now; the reaper starts it"
	}
	return row, nil
}

// acted adds an operator's act to the history of the instance.
func (c *Console) acted(act string, r lifecycle.Record) ledger.Change {
	return ledger.Log(r.Acted(act, c.NewID(), c.Now()))
}

// A Settlement says which operation is to end, by its token, and the Message for the
// platform's user.
type Settlement struct {
	Token   string `json:"token"`
	Message string `json:"message"`
}

// Settle ends a running operation as failed. What it has made so far is dealt with as
// after any failure.
func (c *Console) Settle(ctx context.Context, s Settlement) (Row, error) {
	return decide(ctx, func() (Row, error) { return c.settle(ctx, s) })
}

func (c *Console) settle(ctx context.Context, s Settlement) (Row, error) {
	r, err := c.latest(ctx, s.Token)
	if err != nil {
		return Row{}, err
	}
	if !r.InProgress() {
		return Row{}, refuse("the operation has %s already: nothing was done", r.Operation.Phase)
	}
	failed, err := r.Fail(c.Now(), lifecycle.Failure{Message: s.Message})
	if err == nil {
		err = c.Records.Commit(ctx, ledger.Put(failed), ledger.Log(failed.Ended(r)), c.acted("settle", r))
	}
	return c.row(failed), err
}

// decideTimeout bounds how long a decision is retried while others write the same
// record.
const decideTimeout = 10 * time.Second

func decide[T any](ctx context.Context, once func() (T, error)) (out T, _ error) {
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	err := ledger.Again(ctx, func(context.Context) (err error) {
		out, err = once()
		return err
	})
	if errors.Is(err, ledger.ErrConflict) {
		return out, refuse("its record is being changed all the time: look at it again, and decide again")
	}
	return out, err
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
	r.Reports, others = c.Records.Reports(ctx)
	r.Reports = append([]ledger.Report{}, r.Reports...) // no null for whoever reads JSON
	return r, errors.Join(unread, others)
}

// Resume lifts the reaper's halt.
func (c *Console) Resume(ctx context.Context) (None, error) {
	return None{}, reaper.Resume(ctx, c.Records, c.Whose, c.Now())
}
