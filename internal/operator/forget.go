package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// An Erasure counts where Forget has erased a user.
type Erasure struct {
	Entries    int `json:"entries"`    // entries of histories
	Operations int `json:"operations"` // that have ended
	// Running counts the user's operations in progress, which keep who asked.
	Running int `json:"running"`
}

// Forget erases who asked, from everything that a user asked for on any platform: afterwards it
// looks as if nobody had said. An operation in progress stays as it is, and its end copies who
// asked into the history, so Forget must be repeated after that. It may be stopped at any point and
// run again. It reads all records. The error says what could not be read or written, but never
// names the user, since errors are logged.
func (c *Console) Forget(ctx context.Context, user string) (all Erasure, _ error) {
	if user == "" {
		return all, refuse("give the user: an empty name would match everybody without one")
	}
	var faults []error
	for did, err := range paging.All(ctx, func(ctx context.Context, cursor string) ([]Erasure, string, error) {
		did, next, err := c.forgetIn(ctx, user, cursor)
		return []Erasure{did}, next, err
	}) {
		all.Entries, all.Operations, all.Running = all.Entries+did.Entries, all.Operations+did.Operations, all.Running+did.Running
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return all, fmt.Errorf("%d history entries and %d operations no longer say who asked, but others could not be read "+
			"or written: repair that, and repeat the command: %w", all.Entries, all.Operations, err)
	}
	return all, nil
}

// forgetIn erases a user from one page of all records. After a conflict it reads the page again,
// which no longer has what was erased before. A failure to open or write one record would recur for
// all of them, so it ends the listing.
func (c *Console) forgetIn(ctx context.Context, user, cursor string) (did Erasure, next string, _ error) {
	var unread error
	err := ledger.Again(ctx, func() error {
		var page ledger.Everything
		page, next, unread = c.Records.ScanPage(ctx, cursor, true)
		did.Running = 0
		for _, one := range did.of(page) {
			asked, err := c.datakey.AskedBy(ctx, one.asked, user)
			if err == nil && asked {
				if err = c.Records.Commit(ctx, one.without); err == nil {
					*one.count++
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		next = ""
	}
	return did, next, errors.Join(unread, err)
}

// An erasable is something that may name who asked, with the change that erases that.
type erasable struct {
	asked   lifecycle.Entry
	without ledger.Change // none for an operation in progress
	count   *int
}

// of returns everything in a page that may name who asked.
func (did *Erasure) of(page ledger.Everything) (all []erasable) {
	for _, e := range page.Entries {
		asked := e
		e.Asker = lifecycle.Asker{}
		all = append(all, erasable{asked, ledger.Put(e), &did.Entries})
	}
	for _, r := range page.Records {
		if r.Operation == nil {
			continue
		}
		asked := lifecycle.Entry{Key: r.Key, Asker: r.Operation.Asker}
		if r.InProgress() {
			all = append(all, erasable{asked, ledger.Change{}, &did.Running})
			continue
		}
		ended := *r.Operation // records never change in place
		ended.Asker = lifecycle.Asker{}
		r.Operation = &ended
		all = append(all, erasable{asked, ledger.Put(r), &did.Operations})
	}
	for _, p := range page.Past {
		asked := lifecycle.Entry{Key: p.Key, Asker: p.Operation.Asker}
		p.Operation.Asker = lifecycle.Asker{}
		all = append(all, erasable{asked, ledger.Put(p), &did.Operations})
	}
	return all
}
