package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/golden"
	"github.com/longshore/longshore/kit/conformance"
)

// Other brokers were asked, or read, for what they get wrong. Each of their defects is a row of testdata/peers.txt, with the
// tests that show our right answer; after a change of the rows, docs/other-brokers.md is written by
//
//	go test ./internal/test/e2e -run TestPeersPage -update

// A defect is one row of testdata/peers.txt, by the names of its members. At least one of kit, cases, tests and show says who
// shows that we do right.
type defect struct {
	id   string
	says map[string][]string
	show func(r *runOf) // sends requests to the broker that runs, and checks its answers
}

// rows are all of them.
func rows(t *testing.T) (all []defect) {
	t.Helper()
	members, show := strings.Fields("elsewhere here rules kit cases tests never"), shows()
	for row := range strings.SplitSeq(strings.TrimSpace(string(expect.Get(os.ReadFile("testdata/peers.txt"))(t))), "\n\n") {
		id, rest, _ := strings.Cut(row, "\n")
		if strings.HasPrefix(row, "#") {
			continue
		}
		d := defect{id, map[string][]string{}, show[id]}
		for line := range strings.SplitSeq(rest, "\n") {
			name, text, _ := strings.Cut(line, ": ")
			if !slices.Contains(members, name) || text == "" {
				t.Errorf("%s has the line %q", id, line)
			}
			d.says[name] = append(d.says[name], text)
		}
		delete(show, id)
		all = append(all, d)
	}
	expect.Same(t, "shown, and in no row", []string(nil), slices.Sorted(maps.Keys(show)))
	return all
}

func (d defect) text(member string) string { return strings.Join(d.says[member], " ") }

// known are the rows that there must be.
var known = strings.Fields(`
	B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B11b B12 B13 B14 B15 B16 B17 B18 B19 B20 B21 B22 B23 B24 B25 B26
	A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A16 A17 A18 A19 A20 A21 A22 A23 A24 A25 A26 A27 A28 A29 A30 A31 A32 A33 A34
	C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13
	G1 G2`)

// This broker gets right what other brokers get wrong.
func TestPeers(t *testing.T) {
	p := start(t, t.TempDir(), credentials("LONGSHORE_DEMO_DELAY=100ms")...)
	catalog := catalogIDs(t, p.url)
	t.Run("Rows", func(t *testing.T) {
		for _, d := range rows(t) {
			if d.show == nil {
				continue
			}
			t.Run(d.id, func(t *testing.T) {
				t.Parallel()
				d.show(newRun(t, p.url, catalog))
				if t.Failed() {
					t.Logf("%s: elsewhere, %s; here, %s", d.id, d.text("elsewhere"), d.text("here"))
				}
			})
		}
	})
	expect.Never(t, "the log", p.log.String(), "panic")
}

// Each row is there once, is complete, and names tests that exist.
func TestPeersAreAnswered(t *testing.T) {
	var ofKit, ofCases []string
	for _, c := range httpCases() {
		ofCases = append(ofCases, c.rule)
	}
	for _, c := range conformance.Cases() {
		ofKit = append(ofKit, c.ID)
	}
	var ids []string
	for _, d := range rows(t) {
		ids = append(ids, d.id)
		if len(d.says["elsewhere"]) != 1 || len(d.says["here"]) != 1 ||
			d.show == nil && d.says["kit"] == nil && d.says["cases"] == nil && d.says["tests"] == nil {
			t.Errorf("%s is not complete", d.id)
		}
		for _, id := range strings.Fields(d.text("kit")) {
			if !slices.Contains(ofKit, id) {
				t.Errorf("%s: the kit has no case %q", d.id, id)
			}
		}
		for _, rule := range d.says["cases"] {
			if !slices.Contains(ofCases, rule) {
				t.Errorf("%s: TestHTTPCases has no case %q", d.id, rule)
			}
		}
		for _, name := range d.says["tests"] {
			if !exists(t, name) {
				t.Errorf("%s: there is no test %q", d.id, name)
			}
		}
	}
	expect.Same(t, "the rows, each once and in this order", known, ids)
	for _, name := range []string{"internal/test/e2e TestNothing", "internal/front/osb TestVersionHeader/Nothing",
		"internal/nowhere TestPeers", "internal/front/osb"} {
		if exists(t, name) {
			t.Errorf("%q was found: the test proves nothing", name)
		}
	}
}

// exists tells whether there is a test. A case is one if the test's function has its name as a literal.
func exists(t *testing.T, name string) bool {
	t.Helper()
	folder, test, _ := strings.Cut(name, " ")
	test, of, hasCase := strings.Cut(test, "/")
	for _, file := range expect.Get(filepath.Glob(filepath.Join("../../..", folder, "*_test.go")))(t) {
		_, rest, found := strings.Cut(string(expect.Get(os.ReadFile(file))(t)), "\nfunc "+test+"(t *testing.T) {\n")
		body, _, _ := strings.Cut(rest, "\n}\n")
		if found && strings.HasPrefix(test, "Test") && (!hasCase || strings.Contains(body, strconv.Quote(of))) {
			return true
		}
	}
	return false
}

// worst are the rows that the page shows: what is lost or left behind, good things that are
// deleted, repetitions that are refused, leaks, open doors.
var worst = strings.Fields("A21 C10 A20 A24 C1 A10 C6 B8 B13 A17")

// The table of docs/other-brokers.md is what the rows say.
func TestPeersPage(t *testing.T) {
	all := map[string]defect{}
	for _, d := range rows(t) {
		all[d.id] = d
	}
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	var table strings.Builder
	table.WriteString("\n| row | elsewhere | here |\n| --- | --- | --- |\n")
	for _, id := range worst {
		d, ok := all[id]
		if !ok {
			t.Errorf("the page is to show the row %s, which is not there", id)
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", id, cell.Replace(d.text("elsewhere")), cell.Replace(d.text("here")))
	}
	table.WriteString("\n")
	page := golden.Part(t, "../../../docs/other-brokers.md", table.String())
	expect.Says(t, "docs/other-brokers.md", page, fmt.Sprintf("%d rows", len(all)))
}

// asks proves each case by itself, and that no refusal tells internals.
func asks(cases ...httpCase) func(r *runOf) {
	return func(r *runOf) {
		for _, c := range cases {
			one := r.another()
			if a := one.prove(c); a.status >= 400 {
				plain(one, a)
			}
		}
	}
}

// another is a run with other ids at the same broker.
func (r *runOf) another() *runOf { return newRun(r.T, r.base, r.values) }

// refused is a request whose answer is an error with this code, and nothing beside it.
func refused(asks, body string, status int, code string) httpCase {
	return httpCase{rule: "the refusal", asks: asks, body: body, status: status, has: conflictError(code), only: true}
}

// given is the case in a state.
func (c httpCase) in(g given) httpCase { c.given = g; return c }

// as is the case with another header.
func (c httpCase) as(name, value string) httpCase {
	c.header = map[string]string{name: value}
	return c
}

// leaves is the case with what is read back afterwards.
func (c httpCase) leaves(back *then) httpCase { c.then = back; return c }

// internals are words that only programmers write.
var internals = regexp.MustCompile(`(?i)json:|unmarshal|\bstruct\b|\bgo value\b|panic|goroutine|` +
	`\.go:|exception|request id|\bnil\b|\bEOF\b|dynamodb|bolt`)

func plain(t testing.TB, a answer) {
	t.Helper()
	if found := internals.FindString(a.text("description")); found != "" {
		t.Errorf("the description tells internals: %q in %q", found, a.text("description"))
	}
}
