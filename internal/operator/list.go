package operator

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// stateRunning selects rows with an operation in progress, stateFailed rows with a failed one;
// stateReleased is the state of an orphan that was released from quarantine.
const (
	stateRunning  = "running"
	stateFailed   = "failed"
	stateReleased = "released"
)

// States are the values that a Query's State may have.
func States() []string {
	return []string{stateRunning, stateFailed, string(lifecycle.Creating), string(lifecycle.Ready), string(lifecycle.Updating),
		string(lifecycle.CreateFailed), string(lifecycle.Deleting), string(lifecycle.DeleteFailed), string(lifecycle.Deleted),
		string(lifecycle.Quarantining), string(lifecycle.Quarantined), string(lifecycle.Releasing), stateReleased}
}

// A What is a kind of list.
type What string

// The lists.
const (
	Instances  What = "instances"
	Bindings   What = "bindings"
	Operations What = "operations"
)

// A Query chooses what is listed; an empty member chooses everything.
type Query struct {
	What What `json:"what"`
	// Platform is the id or the name of a known platform.
	Platform string `json:"platform,omitempty"`
	// ID is the id of an instance, a binding or an operation, or a prefix of it.
	ID string `json:"id,omitempty"`
	// State is the state of a row; "running" and "failed" refer to its operation.
	State string `json:"state,omitempty"`
	// Offering and Plan are names, or ids if they have left the catalog.
	Offering string `json:"offering,omitempty"`
	Plan     string `json:"plan,omitempty"`
	// Organization and Space are ids or names.
	Organization string `json:"organization,omitempty"`
	Space        string `json:"space,omitempty"`
	// Since and Until bound the beginning of a row: when it was made or kept, or when its operation started.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// After is the place where a page begins: next of the page before, or empty for the first page.
	After string `json:"after,omitempty"`
}

// An Operation is the operation of a row.
type Operation struct {
	Token       string `json:"token"`
	Kind        string `json:"kind"`
	Phase       string `json:"phase"`
	Description string `json:"description,omitempty"`
	Percent     int    `json:"percent"`
	Attempt     int    `json:"attempt"`
	Faults      int    `json:"faults,omitempty"`
	// Trouble is what a person has to mend before the operation goes on.
	Trouble  string    `json:"trouble,omitempty"`
	Started  time.Time `json:"started"`
	Settled  time.Time `json:"settled,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Expected is when the operation is expected to be done.
	Expected time.Time `json:"expected,omitzero"`
	Request  string    `json:"request_identity,omitempty"`
}

func operationOf(key lifecycle.Key, op *lifecycle.Operation) *Operation {
	if op == nil {
		return nil
	}
	out := &Operation{
		Token: lifecycle.Token{Operation: op.ID, Key: key}.String(), Kind: string(op.Kind), Phase: string(op.Phase),
		Description: op.Description, Percent: op.Percent, Attempt: op.Attempt, Faults: op.Faults, Trouble: op.Trouble,
		Started: op.Started, Settled: op.Settled, Deadline: op.Deadline,
		Request: op.Asker.Request,
	}
	if op.Expected > 0 {
		out.Expected = op.Started.Add(op.Expected)
	}
	return out
}

// List returns a page of the rows that the query chooses; a page may be empty, and next is empty at
// the end. A deleted or a kept instance is listed only as an operation, or if the query asks for
// that state. List reads all records, unless the query names a token or asks for what is running.
// The error says what could not be read; the rest is listed. An unknown platform is refused.
func (c *Console) List(ctx context.Context, q Query) (rows []Row, next string, err error) {
	t, noToken := lifecycle.ParseToken(q.ID)
	if noToken != nil && q.NewestFirst() { // the rows have their names, and are filtered by them
		rows, next, err = c.rows(ctx, &q, c.existing(&q), nil)
		rows = slices.DeleteFunc(rows, func(r Row) bool { return !q.takes(r) })
		slices.SortStableFunc(rows, func(a, b Row) int { return b.Created.Compare(a.Created) })
		return rows, next, err
	}
	known, err := c.platforms(ctx, &q)
	if err != nil {
		return nil, "", err
	}
	var page ledger.Everything
	switch {
	case noToken == nil:
		page, err = c.tokens(ctx, t)
	case q.State == stateRunning:
		page.Records, next, err = c.due(ctx, q.After, func(r lifecycle.Record) bool { return r.InProgress() && q.lists(r) })
	default:
		page, next, err = c.Records.ScanPage(ctx, q.After, false)
		page.Records = slices.DeleteFunc(page.Records, func(r lifecycle.Record) bool { return !q.lists(r) })
		if q.What != Operations {
			page.Past = nil
		}
	}
	anywhere := q
	anywhere.Organization, anywhere.Space = "", ""
	for _, r := range c.found(page) {
		if q.Organization+q.Space != "" && anywhere.takes(r) {
			c.openName(ctx, &r)
		}
		if q.takes(r) {
			r.PlatformName = known[r.Platform]
			rows = append(rows, r)
		}
	}
	if q.ID != "" && len(rows) == 1 {
		c.openName(ctx, &rows[0])
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Binding, b.Binding),
			a.began().Compare(b.began()))
	})
	return rows, next, err
}

// found returns the rows of what was read.
func (c *Console) found(page ledger.Everything) (rows []Row) {
	for _, r := range page.Records {
		rows = append(rows, c.row(r))
	}
	for _, p := range page.Past {
		rows = append(rows, Row{Platform: p.Key.Platform, Instance: p.Key.Instance, Binding: p.Key.Binding,
			Operation: operationOf(p.Key, &p.Operation)})
	}
	return rows
}

// tokens returns the record of a token or, if a later operation has replaced its operation, the past operation.
func (c *Console) tokens(ctx context.Context, t lifecycle.Token) (of ledger.Everything, _ error) {
	r, err := c.read(ctx, t.Key)
	if err != nil {
		return of, err
	}
	if r.Operation != nil && r.Operation.ID == t.Operation {
		of.Records = []lifecycle.Record{r}
		return of, nil
	}
	p, err := c.Records.PastOperation(ctx, t.Operation, c.Now())
	if err == nil && p.Version > 0 && p.Key == t.Key {
		of.Past = []lifecycle.PastOperation{p}
	}
	return of, err
}

// due reads a page of the index of everything that the reaper is to look at some day, and returns the chosen records.
func (c *Console) due(
	ctx context.Context, after string, chosen func(lifecycle.Record) bool,
) (all []lifecycle.Record, next string, err error) {
	page, next, err := c.Records.Due(ctx, c.Now().AddDate(100, 0, 0), after)
	for _, d := range page {
		if d.Record != nil && chosen(*d.Record) {
			all = append(all, *d.Record)
		}
	}
	return all, next, err
}

// NewestFirst reports whether the query asks for instances that exist: these are listed by a
// directory, the newest first.
func (q Query) NewestFirst() bool {
	return q.What == Instances && q.State != string(lifecycle.Deleted) && q.State != stateRunning
}

// directoryPage is how many instances are in a page of the directory.
const directoryPage = 200

// existing reads a page of the instances that exist, on the query's platform or on all. The query may still change before the
// page is read.
func (c *Console) existing(q *Query) func(context.Context, string) ([]lifecycle.Record, string, error) {
	return func(ctx context.Context, after string) ([]lifecycle.Record, string, error) {
		return c.Records.Existing(ctx, q.Platform, after, directoryPage, c.Now(), func(k lifecycle.Key) bool {
			return strings.HasPrefix(k.Instance, q.ID)
		})
	}
}

// rows returns the rows that the query chooses from a page of records, and completes each of them if complete is given. Before
// it reads the page, it puts the id of the query's platform in place of its name.
func (c *Console) rows(
	ctx context.Context, q *Query, read func(context.Context, string) ([]lifecycle.Record, string, error),
	complete func(*Row, lifecycle.Record),
) (all []Row, next string, err error) {
	known, err := c.platforms(ctx, q)
	if err != nil {
		return nil, "", err
	}
	opens := true
	page, next, err := read(ctx, q.After)
	for _, r := range page {
		row := c.row(r)
		if opens { // without the right to use the key, the other rows are not tried
			opens = c.nameIn(ctx, &row, r) == nil
		}
		if q.chooses(row) {
			row.PlatformName = known[row.Platform]
			if complete != nil {
				complete(&row, r)
			}
			all = append(all, row)
		}
	}
	return all, next, err
}

// lists reports whether the query asks for records of this kind.
func (q Query) lists(r lifecycle.Record) bool {
	return r.IsBinding() && q.What != Instances || !r.IsBinding() && q.What != Bindings
}

func (r Row) began() time.Time {
	if r.Operation == nil {
		return time.Time{}
	}
	return r.Operation.Started
}

// takes reports whether a row belongs to the list.
func (q Query) takes(r Row) bool {
	if q.What == Operations && r.Operation == nil {
		return false
	}
	id := r.Instance
	if q.What == Bindings {
		id = r.Binding
	}
	if q.ID != "" && !strings.HasPrefix(id, q.ID) && (r.Operation == nil || !strings.HasPrefix(r.Operation.Token, q.ID)) {
		return false
	}
	gone := r.State == string(lifecycle.Deleted) || r.State == string(lifecycle.Quarantined)
	return q.chooses(r) && (q.State != "" || q.What == Operations || !gone)
}

// chooses reports whether a row passes the filters.
func (q Query) chooses(r Row) bool {
	is := func(asked string, has ...string) bool { return asked == "" || slices.Contains(has, asked) }
	if !is(q.Platform, r.Platform) || !is(q.Offering, r.Service) || !is(q.Plan, r.Plan) ||
		!is(q.Organization, r.Organization, r.OrganizationName) || !is(q.Space, r.Space, r.SpaceName) {
		return false
	}
	began := r.Created
	switch {
	case r.Kept != nil:
		began = r.Kept.Since
	case q.What == Operations:
		began = r.began()
	}
	if began.Before(q.Since) || !q.Until.IsZero() && began.After(q.Until) {
		return false
	}
	switch q.State {
	case "":
		return true
	case stateRunning:
		return r.Operation != nil && r.Operation.Phase == string(lifecycle.InProgress)
	case stateFailed:
		return r.Operation != nil && r.Operation.Phase == string(lifecycle.Failed)
	default:
		return q.State == r.State
	}
}

// Instance returns the record of the only instance with this id. The platform, by id or name, is
// needed if several platforms have such an instance. No other instance's record is read.
func (c *Console) Instance(ctx context.Context, platform, id string) (found lifecycle.Record, err error) {
	if platform, err = platformID(c.known(ctx), platform); err != nil {
		return found, err
	}
	for r, err := range paging.All(ctx, func(ctx context.Context, after string) ([]lifecycle.Record, string, error) {
		return c.Records.Existing(ctx, platform, after, directoryPage, c.Now(), func(k lifecycle.Key) bool {
			return k.Instance == id && k.Life == ""
		})
	}) {
		if err != nil {
			return found, err
		}
		if found.Version > 0 {
			return found, refuse("several platforms have an instance %q: say which with --platform", id)
		}
		found = r
	}
	if found.Version == 0 {
		return found, refuse("there is no instance %q: `longshore instances` lists them", id)
	}
	return found, nil
}
