package pages

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
)

// PrefixConsole begins the path of every page of the console.
const PrefixConsole = "/console"

const pathOverview = PrefixConsole + "/overview"

// Console is what the operator's console needs besides what the page of an instance needs. It
// reads indexes of the records, and never the whole table.
type Console struct {
	Acts      acts.Acts // of a session that may act
	Offerings func() []catalog.Offering
	Registry  func(ctx context.Context) (platforms.Registry, error)
}

// A page of a list ends at either of these bounds, so that it stays under 30 kB and is answered in
// time however many instances there are.
const (
	mostRows   = 20
	mostLooked = 400
)

// parts are the pages in the navigation. The path of each is its name in small letters.
var parts = []string{
	"Overview", "Instances", "Operations", "Upgrades", "Quarantine", "Retained", "Offerings", "Costs", "Platforms",
}

// consolePages are the console's pages, by their paths.
var consolePages = map[string]func(*visit) g.Node{
	"overview": (*visit).overview, "instances": (*visit).instances, "instance": (*visit).instance,
	"operations": (*visit).operations, "upgrades": (*visit).upgrades, "quarantine": (*visit).quarantine,
	"retained": (*visit).retained, "offerings": (*visit).offerings, "costs": (*visit).costs, "platforms": (*visit).platforms,
	"act": (*visit).ask,
}

// ofConsole wraps a page so that only sessions of the console see it.
func ofConsole(part string, show func(*visit) g.Node) func(*visit) {
	return func(v *visit) {
		sees, acting, err := v.roles(Scope{Console: true})
		v.part, v.acts = part, acting != nil
		switch {
		case err != nil:
			v.fail(err)
		case !sees:
			v.signOn(Scope{Console: true}, message("Sign in to see the console",
				"The console needs a session, which a link opens. A link is valid for 15 minutes, and opens one session. "+
					"The command line prints one:", example("Command", "longshore console")))
		default:
			page := show(v)
			if err := errors.Join(v.unread...); err != nil {
				v.Log.ErrorContext(v.Context(), "the console cannot read everything", "error", err)
			}
			v.show(v.status, page)
		}
	}
}

// page renders a page of the console; a live page updates itself.
func (v *visit) page(title string, live bool, body ...g.Node) g.Node {
	role := "Reads only"
	if v.acts {
		role = "May act"
	}
	return layout(title+" – Longshore",
		h.Header(h.Class("bar"),
			para("brand", "Longshore"),
			h.Nav(h.Aria("label", "Console"), g.Map(parts, func(name string) g.Node {
				path := strings.ToLower(name)
				here := path == v.part || path == v.part+"s" // the page of one instance belongs to the list of instances
				return h.A(h.Href(path), g.If(here, h.Aria("current", "page")), g.Text(name))
			})),
			posts("leave", "Sign out", nil, h.Span(g.Text(role)))),
		h.Main(h.Class("wide"), g.If(live, h.Data("live", "")), g.If(v.busy, h.Data("busy", "")), h.H1(g.Text(title)),
			g.If(len(v.unread) > 0, alert("Not everything can be read",
				"Things may exist that are not shown here. The log of the broker says why they cannot be read.")),
			g.Group(body)))
}

// instead renders a page that says why the one that was asked for is not there, and sets its status.
func (v *visit) instead(status int, title, why string, more ...g.Node) g.Node {
	v.status = status
	return v.page(title, false, h.P(g.Text(why)), g.Group(more))
}

// alert renders a box for something that needs a person's attention.
func alert(title, text string, more ...g.Node) g.Node {
	return h.Div(h.Class("alert"), h.Role("status"), h.P(h.Class("bad"), h.Strong(g.Text(title))), g.Text(text), g.Group(more))
}

// hint renders a remark of a page about itself.
func hint(text string, more ...g.Node) g.Node {
	return h.P(h.Class("none"), g.Text(text), g.Group(more))
}

// note keeps an error for the log, so that the rest of the page is shown.
func (v *visit) note(err error) {
	if err != nil {
		v.unread = append(v.unread, err)
	}
}

// A reader reads a page of a listing. The cursor is empty for the first page, and next at the end.
type reader[T any] func(cursor string) (page []T, next string, _ error)

// upTo counts the entries of a listing to its end, or until it has counted so many, and reports whether it
// read all. It keeps one page at a time: a record may hold 100 KiB that a tenant has sent.
func upTo[T any](v *visit, most int, read reader[T], count func(T)) (whole bool) {
	for counted, cursor := 0, ""; ; {
		page, next, err := read(cursor)
		v.note(err)
		for _, one := range page {
			count(one)
		}
		if counted, cursor = counted+len(page), next; next == "" || counted >= most {
			return next == ""
		}
	}
}

// once returns a reader of a list that is known as a whole.
func once[T any](all []T) reader[T] {
	return func(string) ([]T, string, error) { return all, "", nil }
}

// gather reads pages of a source until a page of the list is full, or until it has looked at so
// many entries that an answer is due. A place in the list consists of the cursor of a source's page
// and the number of its entries to skip. Without takes, the list has all entries.
func gather[T any](v *visit, read reader[T], takes func(T) bool) (rows []T, next string) {
	skip, cursor, _ := strings.Cut(v.URL.Query().Get("at"), ".")
	passed, _ := strconv.Atoi(skip) // an invalid place means the first
	for looked := 0; ; {
		page, after, err := read(cursor)
		v.note(err)
		for n := min(max(passed, 0), len(page)); n < len(page); n++ {
			if len(rows) == mostRows {
				return rows, strconv.Itoa(n) + "." + cursor
			}
			if takes == nil || takes(page[n]) {
				rows = append(rows, page[n])
			}
		}
		if looked += max(len(page), 1); after == "" {
			return rows, ""
		}
		if passed, cursor = 0, after; looked >= mostLooked {
			return rows, "0." + cursor
		}
	}
}

// due returns a reader of the records that the reaper is to look at within the given time.
func (v *visit) due(until time.Duration) reader[lifecycle.Record] {
	return func(cursor string) (all []lifecycle.Record, next string, err error) {
		page, next, err := v.Records.Due(v.Context(), v.now.Add(until), cursor)
		for _, d := range page {
			if d.Record != nil {
				all = append(all, *d.Record)
			}
		}
		return all, next, err
	}
}

// existing reads a page of the instances that exist, the latest first.
func (v *visit) existing(cursor string) ([]lifecycle.Record, string, error) {
	return v.Records.Existing(v.Context(), "", cursor, mostRows, v.now, func(k lifecycle.Key) bool {
		return k.Life == "" // former lives have lists of their own
	})
}

// more renders links to the next page of a list, and back to the first.
func (v *visit) more(next string) g.Node {
	to := func(place, words string) g.Node {
		q := v.URL.Query()
		if q.Del("at"); place != "" {
			q.Set("at", place)
		}
		return link(v.part+"?"+q.Encode(), words)
	}
	later := v.URL.Query().Get("at") != ""
	return g.If(later || next != "", h.P(h.Class("pager"), g.If(later, to("", "First page")),
		g.If(next != "", to(next, "Next page"))))
}

// listed renders a page of a list as a table, or says that there is nothing to list.
func listed[T any](v *visit, read reader[T], takes func(T) bool, heads []string, none string, cells func(T) []g.Node) g.Node {
	rows, next := gather(v, read, takes)
	if next != "" {
		none = "None of the records read so far match. The next page goes on."
	}
	return g.Group{g.If(len(rows) == 0, hint(none)), g.If(len(rows) > 0, table(heads, rows, cells)), v.more(next)}
}

// to returns the path of an instance's page, relative to another page of the console or of instances.
func to(k lifecycle.Key) string { return "instance?" + query(k) }

// longestWord is the most that a list shows of a text, in characters.
const longestWord = 60

// short shortens a text for a list.
func short(s string) string { return clippedTo(s, longestWord) }
