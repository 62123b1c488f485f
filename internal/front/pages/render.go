package pages

import (
	"cmp"
	"fmt"
	"time"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/components"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/base/shell"
)

// head is the same on every page. It names assets relative to the page, which may be below a path that
// a gateway keeps to itself.
const head = `<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex">` +
	`<link rel="stylesheet" href="style.css"><script src="script.js" defer></script>`

// layout renders a page around its main part.
func layout(title string, main ...g.Node) g.Node {
	return components.HTML5(components.HTML5Props{Title: title, Language: "en", Head: []g.Node{g.Raw(head)}, Body: main})
}

// message renders a page with a single message.
func message(title, text string, more ...g.Node) g.Node {
	return layout(title, h.Main(h.Class("message"), h.H1(g.Text(title)), h.P(g.Text(text)), g.Group(more)))
}

// signIn renders the page for a request without a session. It does not reveal whether the instance
// exists.
func signIn(instance string) g.Node {
	return message("Sign in to see this instance", "This page needs a session, which a link opens. "+
		"A link is valid for 15 minutes, and opens one session. Ask the operator of the broker for one:",
		h.Pre(h.TabIndex("0"), h.Role("region"), h.Aria("label", "Command"), g.Text("longshore dashboard "+shell.Word(instance))))
}

// again renders a link to the page of a scope, which redirects to the scope's login.
func again(of Scope) g.Node {
	return h.P(h.A(h.Class("primary"), h.Href(".."+of.path()), g.Text("Sign on")))
}

// hidden renders a member of a form that people do not see.
func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// posts renders a form with a button, and with what stands before the button.
func posts(action, words string, look g.Node, before ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(action), g.Group(before), h.Button(look, h.Type("submit"), g.Text(words)))
}

// para renders a paragraph; nothing without words.
func para(class, words string) g.Node {
	return g.If(words != "", h.P(h.Class(class), g.Text(words)))
}

// section renders a part of a page under a heading.
func section(id, title string, body ...g.Node) g.Node {
	return h.Section(h.ID(id), h.Aria("labelledby", id+"-title"), h.H2(h.ID(id+"-title"), g.Text(title)), g.Group(body))
}

// A fact is a line in a list of facts.
type fact struct {
	name  string
	value g.Node // nil leaves the fact out
}

func text(s string) g.Node {
	if s == "" {
		return nil
	}
	return g.Text(s)
}

func facts(all ...fact) g.Node {
	return h.Dl(g.Map(all, func(f fact) g.Node {
		if f.value == nil {
			return nil
		}
		return h.Div(h.Dt(g.Text(f.name)), h.Dd(f.value))
	}))
}

// table renders a table that narrow screens show as cards. ARIA roles keep it a table for screen
// readers where the style turns its rows into blocks.
func table[T any](heads []string, rows []T, cells func(T) []g.Node) g.Node {
	var all g.Group
	for _, r := range rows {
		all = append(all, row(heads, cells(r)))
	}
	return tableOf(heads, all)
}

// tableOf is not generic, so that the compiler does not generate it anew for each type.
func tableOf(heads []string, rows g.Group) g.Node {
	titles := g.Group{h.Role("row")}
	for _, s := range heads {
		titles = append(titles, h.Th(h.Role("columnheader"), h.Scope("col"), g.Text(s)))
	}
	return h.Table(h.Role("table"), h.THead(h.Role("rowgroup"), h.Tr(titles)), h.TBody(h.Role("rowgroup"), rows))
}

func row(heads []string, cells []g.Node) g.Node {
	all := g.Group{h.Role("row")}
	for i, head := range heads {
		all = append(all, h.Td(h.Role("cell"), h.Data("head", head), cells[i]))
	}
	return h.Tr(all)
}

// ago renders a time relative to now, with the exact time in its title.
func ago(at, now time.Time) g.Node {
	if at.IsZero() {
		return nil
	}
	words := span(now.Sub(at)) + " ago"
	switch {
	case at.After(now):
		words = "in " + span(at.Sub(now))
	case now.Sub(at) < time.Minute:
		words = "just now"
	}
	exact := at.UTC().Format("2 January 2006, 15:04:05 UTC")
	return h.Time(h.DateTime(at.UTC().Format(time.RFC3339)), h.Title(exact), g.Text(words))
}

// span returns a duration in its largest unit, rounded down.
func span(d time.Duration) string {
	for _, u := range []struct {
		name string
		is   time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := int(d / u.is); n > 0 {
			return plural(n, u.name)
		}
	}
	return plural(max(int(d/time.Second), 1), "second")
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// link renders a link, relative to the page.
func link(to, words string) g.Node { return h.A(h.Href(to), g.Text(words)) }

// code renders a text that people copy or compare, such as an id.
func code(s string) g.Node { return h.Code(g.Text(s)) }

// dot renders a state as a coloured dot and a word.
func dot(tone, word string) g.Node {
	return h.Span(h.Class("state "+tone), g.Text(word))
}

// example renders a text for the user to copy.
func example(label, content string) g.Node {
	return h.Div(h.Class("example"),
		h.Pre(h.TabIndex("0"), h.Role("region"), h.Aria("label", label), h.Data("copy", ""), code(content)))
}

// clipped shortens a text to at most longestText characters.
func clipped(s string) string { return clippedTo(s, longestText) }

func clippedTo(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// first returns the first text that is not empty.
func first(texts ...string) string { return cmp.Or(texts...) }
