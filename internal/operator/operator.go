// Package operator is what an operator may see and change of the records: list and show them, start an operation
// again, end one, read the reaper's reports and lift its halt. It needs the records, a way to start executions,
// and the vault, to rebuild records. It shows no parameter, no credential and no identity of a user.
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
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/work/reaper"
)

// Options configure a Console.
type Options struct {
	acts.Acts
	Catalog func(serviceID, planID string) (catalog.Offering, catalog.Plan, bool)
	// ServiceOf finds the offering of a plan.
	ServiceOf func(planID string) (serviceID string, found bool)
	// Platforms are the names of the platforms, by their ids; nil with an error.
	Platforms func(ctx context.Context) (map[string]string, error)
	// Names return the names of a thing on its server or in its account, by provider.
	Names map[string]func(provider.Tags) []string
	// Vault shows which sealed values in the records can be opened.
	Vault vault.Vault
	// Inventories list the existing things, by the name of the provider.
	Inventories map[string]provider.Inventory
	// Servers are the providers whose targets have epochs, by name.
	Servers map[string]wired.Provider
	// Origin is where browsers reach the broker, as scheme and host; empty if no broker runs.
	Origin string
	// Whose is the deployment and the broker that the table belongs to; see reaper.Resume.
	Whose ledger.Identity
	// Lost is called by Rebuild for each loss as soon as it happens; it may be nil.
	Lost func(what string)
	// Damaged names the records that were found damaged before a rebuild; see Rebuilt.
	Damaged []string
	// Rebuilt is called when a rebuild has ended; it may be nil.
	Rebuilt func(ctx context.Context) error
}

// A Console is an operator's view of the records.
type Console struct {
	Options
	datakey *datakey.Vault
}

// New makes a console.
func New(o Options) *Console { return &Console{o, datakey.New(o.Records, o.Vault)} }

// A Refusal says why nothing was done, and what to do.
type Refusal = acts.Refusal

func refuse(format string, args ...any) error { return acts.Refuse(format, args...) }

// read reads a record as it is now.
func (c *Console) read(ctx context.Context, key lifecycle.Key) (lifecycle.Record, error) {
	return c.Records.Record(ctx, key, c.Now())
}

// did turns the outcome of an act into a row.
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
	return c.did(c.Acts.Drive(ctx, act, r, with...))
}

// Retry starts a running operation again, or deletes what failed; see acts.Retry.
func (c *Console) Retry(ctx context.Context, token string) (Row, error) {
	return c.did(c.Acts.Retry(ctx, token, nil))
}

// A Settlement says which operation to end, by its token, with the Message for the platform's user.
type Settlement struct {
	Token   string `json:"token"`
	Message string `json:"message"`
}

// Settle ends a running operation as failed; see acts.Settle.
func (c *Console) Settle(ctx context.Context, s Settlement) (Row, error) {
	return c.did(c.Acts.Settle(ctx, s.Token, s.Message))
}

// A Reaper is what the reaper found and did.
type Reaper struct {
	// Inventory says how far the reaper's inventory has come, and whether the reaper has halted.
	Inventory ledger.Inventory `json:"inventory"`
	Reports   []ledger.Report  `json:"reports"` // the oldest first
}

// Report returns what the reaper found and did. The error says what could not be read; the rest is returned.
func (c *Console) Report(ctx context.Context, _ None) (r Reaper, _ error) {
	var unread, others error
	r.Inventory, unread = c.Records.Inventory(ctx)
	r.Reports, others = c.Records.Reports(ctx, time.Time{})
	r.Reports = append([]ledger.Report{}, r.Reports...) // an empty array in JSON, not null
	return r, errors.Join(unread, others)
}

// Resume lifts the reaper's halt.
func (c *Console) Resume(ctx context.Context, _ None) (None, error) {
	return None{}, reaper.Resume(ctx, c.Records, c.Whose, c.Now())
}
