package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
)

// A Link leads to the console of a broker: to one in this process, which is Console.Call, or over
// the socket of a running broker. It calls a method by its name with an argument as JSON, and
// returns the method's result, possibly along with an error.
type Link func(ctx context.Context, method string, in json.RawMessage) (out json.RawMessage, err error)

// A Method is a request that an operator makes of a broker.
type Method[In, Out any] struct {
	name string
	// within bounds the time for an answer; zero means no bound.
	within time.Duration
}

// brief is the bound for methods that read or write few records.
const brief = time.Minute

// The methods, each under the name by which a Link calls it. The method of Console documents what it does.
var (
	List        = paged("list", (*Console).List)
	Quarantined = paged("quarantined", (*Console).Quarantined)
	Retained    = paged("retained", (*Console).Retained)
	Upgrades    = paged("upgrades", (*Console).Upgrades)
	Retry       = method("retry", brief, (*Console).Retry)
	Recreate    = method("recreate", brief, (*Console).Recreate)
	Settle      = method("settle", brief, (*Console).Settle)
	Forget      = method("forget", 0, (*Console).Forget)
	Owner       = method("owner", 0, (*Console).Owner)
	Dashboard   = method("dashboard", brief, (*Console).Dashboard)
	Watched     = method("console", brief, (*Console).Watched)
	Report      = method("report", brief, (*Console).Report)
	Resume      = method("resume", brief, (*Console).Resume)
	Undelete    = method("undelete", brief, (*Console).Undelete)
	Release     = method("release", brief, (*Console).Release)
	Discard     = method("discard", brief, (*Console).Discard)
	Rebuild     = method("rebuild", 0, (*Console).Rebuild)
	Reconcile   = method("reconcile", 0, (*Console).Reconcile)
)

// table has the implementation of each method by its name.
var table = map[string]func(c *Console, ctx context.Context, in json.RawMessage) (json.RawMessage, error){}

func method[In, Out any](name string, within time.Duration, do func(*Console, context.Context, In) (Out, error)) Method[In, Out] {
	table[name] = func(c *Console, ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, fmt.Errorf("reading the arguments of %q: %w", name, err)
		}
		out, failed := do(c, ctx, in)
		answer, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("writing the answer of %q: %w", name, err)
		}
		return answer, failed
	}
	return Method[In, Out]{name, within}
}

// A Page is a part of a list. Next is the place where the next part begins; empty at the end.
type Page struct {
	Items []Row  `json:"items,omitempty"`
	Next  string `json:"next,omitempty"`
}

func paged(name string, list func(*Console, context.Context, Query) ([]Row, string, error)) Method[Query, Page] {
	return method(name, brief, func(c *Console, ctx context.Context, q Query) (Page, error) {
		items, next, err := list(c, ctx, q)
		return Page{items, next}, err
	})
}

// All asks for page after page of a list, and yields the rows; see paging.All.
func All(ctx context.Context, link Link, list Method[Query, Page], q Query) iter.Seq2[Row, error] {
	return paging.All(ctx, func(ctx context.Context, after string) ([]Row, string, error) {
		q.After = after
		page, err := list.Ask(ctx, link, q)
		return page.Items, page.Next, err
	})
}

// None is the argument or the result of a method that has none.
type None struct{}

// Ask asks the broker that the link leads to. The result may be of use even if there is an error.
func (m Method[In, Out]) Ask(ctx context.Context, link Link, in In) (out Out, _ error) {
	if m.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.within)
		defer cancel()
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	answer, failed := link(ctx, m.name, raw)
	if len(answer) > 0 {
		err = json.Unmarshal(answer, &out)
	}
	if failed != nil {
		return out, failed
	}
	return out, err
}

// Knows reports whether there is a method of that name.
func Knows(name string) bool { return table[name] != nil }

// Call is the Link to the console itself; see Knows.
func (c *Console) Call(ctx context.Context, name string, in json.RawMessage) (json.RawMessage, error) {
	return table[name](c, ctx, in)
}

// Faults returns the errors that errors.Join has joined, or the error alone if it is not joined.
func Faults(err error) []error {
	joined, several := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !several || errors.Join(joined.Unwrap()...).Error() != err.Error(): // its text says more than its causes
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, Faults(one)...)
	}
	return all
}
