package pages

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

const (
	// factsAge is the age of the last inquiry from which a page makes another one.
	factsAge = time.Minute
	// factsWait is how long a page waits for the answer to an inquiry, at most.
	factsWait = 15 * time.Second
)

// refresh has newer facts asked for, and does not wait for them. Asking is claimed by a conditional
// write: across all processes, an instance is asked at most once a minute. A failure does not
// affect the page, which shows the last facts.
func (v *visit) refresh(is *view) {
	if is.State != lifecycle.Ready || v.now.Sub(is.facts.Asked) < factsAge {
		return
	}
	is.facts.Asked = v.now
	err := v.Records.Commit(v.Context(), ledger.Put(is.facts))
	if err == nil {
		err = v.Inquire(v.Context(), workflow.Inquiry{
			Key: is.Key, Incarnation: is.Incarnation, Asked: v.now, Version: is.facts.Version + 1,
		})
	}
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		v.Log.WarnContext(v.Context(), "the provider cannot be asked for newer facts of an instance", "error", err)
	}
}

// busy reports whether the page is about to change: an operation runs, or newer facts are on their way.
func (v *view) busy() bool {
	return v.InProgress() || v.State == lifecycle.Ready && v.facts.Answered.Before(v.facts.Asked) &&
		v.now.Sub(v.facts.Asked) < factsWait
}

// use renders how much of the instance is in use, and as of when.
func (v *view) use() g.Node {
	f, at := v.facts.Facts, v.facts.Answered
	var body g.Node
	switch {
	case v.State == lifecycle.Deleted, at.IsZero() && v.State != lifecycle.Ready:
		return nil
	case at.IsZero():
		body = hint("Not known yet.")
	case f.Size == nil && f.Connections == nil && f.LastBackup.IsZero():
		return nil
	default:
		body = facts(
			fact{"Storage", gauge("Storage", f.Size, f.SizeLimit, size)},
			fact{"Connections", gauge("Connections", f.Connections, f.ConnectionLimit, digits)},
			fact{"Last backup", ago(f.LastBackup, v.now)},
			fact{"As of", ago(at, v.now)},
		)
	}
	return section("use", "Storage and connections", body)
}

// gauge renders an amount, with a bar if it has a limit.
func gauge(name string, used *int64, limit int64, words func(int64) string) g.Node {
	if used == nil {
		return nil
	}
	if limit == 0 {
		return text(words(*used))
	}
	return g.Group{g.Text(words(*used) + " of " + words(limit)), h.Progress(
		h.Value(digits(min(*used, limit))), h.Max(digits(limit)), h.Aria("label", name+" in use"))}
}

func digits(n int64) string { return strconv.FormatInt(n, 10) }

// size returns a number of bytes in words.
func size(n int64) string {
	value, units := float64(n), []string{"bytes", "kB", "MB", "GB", "TB"}
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	if value == float64(int64(value)) {
		return fmt.Sprintf("%.0f %s", value, units[0])
	}
	return fmt.Sprintf("%.1f %s", value, units[0])
}

// console renders a link to the cloud's own page of the instance.
func console(address string) g.Node {
	if address == "" {
		return nil
	}
	return h.A(h.Href(address), h.Rel("noreferrer"), g.Text("Open it, with a login to the cloud"))
}
