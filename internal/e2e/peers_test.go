package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updatePeers = flag.Bool("update", false, "write docs/peers.md")

const peersPage = "../../docs/peers.md"

// rows are all that must be answered for: none may be missing, or be answered
// for twice.
func rows() []string {
	var out []string
	for _, of := range []struct {
		letter string
		last   int
	}{{"B", 26}, {"A", 34}, {"C", 13}, {"G", 2}} {
		for n := range of.last {
			out = append(out, fmt.Sprintf("%s%d", of.letter, n+1))
			if of.letter == "B" && n+1 == 11 {
				out = append(out, "B11b")
			}
		}
	}
	return out
}

// What other brokers get wrong, we get right: each row of what was found in
// them is a test, or says why it cannot come up.
func TestPeers(t *testing.T) {
	p := start(t, t.TempDir(), credentials("LONGSHORE_DEMO_DELAY=100ms")...)
	known := catalogIDs(t, p.url)
	var have []string
	for _, peer := range peers() {
		have = append(have, peer.row)
		t.Run(peer.row, func(t *testing.T) {
			if ways := btoi(peer.cases != nil || peer.test != nil) + btoi(peer.elsewhere != "") + btoi(peer.absent != ""); ways != 1 {
				t.Fatalf("it is answered in %d ways, not in one", ways)
			}
			t.Parallel()
			if peer.elsewhere != "" {
				requireTest(t, peer.elsewhere)
			}
			for n, c := range peer.cases {
				values := maps.Clone(known)
				values["I"], values["B"] = fmt.Sprintf("peer-%s-%d", peer.row, n), fmt.Sprintf("peer-b-%s-%d", peer.row, n)
				values["binding"] = values["B"]
				r := &runOf{T: t, base: p.url, values: values}
				r.bring(c.given)
				r.check(c, r.do(c))
				if c.then != nil {
					back := httpCase{rule: c.rule + ", read back", method: "GET", path: c.then.path, status: c.then.status, has: c.then.has}
					r.check(back, r.do(back))
				}
			}
			if peer.test != nil {
				peer.test(t, p, maps.Clone(known))
			}
		})
	}
	if want := rows(); !slices.Equal(slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(want))) {
		t.Errorf("rows %v, want %v", have, want)
	}
	t.Cleanup(func() {
		if strings.Contains(p.log.String(), "panic") {
			t.Errorf("the broker panicked:\n%s", p.log)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// requireTest looks for a test by its package and name.
func requireTest(t *testing.T, named string) {
	t.Helper()
	dir, name, _ := strings.Cut(named, " ")
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte("func "+name+"(")) {
			return
		}
	}
	t.Errorf("there is no test %s", named)
}

// The page says the same as the table.
func TestPeersPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`# What other brokers get wrong

Found in three open-source brokers by running them, or by reading their code: B is brokerapi v13 (a library, which lets a broker do
this), A the AWS Service Broker, C the Cloud Service Broker, G an older Go broker. Each row is a test here; this page is made by
` + "`go test ./internal/e2e -run Peers -update`" + `, and a test keeps it true.

| row | what goes wrong | what this broker does | shown by |
| --- | --- | --- | --- |
`)
	for _, p := range peers() {
		by := "internal/e2e TestPeers/" + p.row
		right := p.right
		switch {
		case p.elsewhere != "":
			by = p.elsewhere
		case p.absent != "":
			by, right = "—", "cannot come up: "+p.absent
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.row, p.wrong, right, by)
	}
	if *updatePeers {
		if err := os.WriteFile(peersPage, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(peersPage); err != nil || !bytes.Equal(got, b.Bytes()) {
		t.Errorf("docs/peers.md is not up to date (%v): run go test ./internal/e2e -run Peers -update", err)
	}
}
