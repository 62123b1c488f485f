package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// One damaged record of the reaper's hides no other one, whether the broker runs or not: it
// is named and counted, the rest is listed, and the exit status is 2.
func TestListsGoAroundADamagedRecord(t *testing.T) {
	b := newBench(t)
	b.stop()
	s := expect.Get(bolt.Open(filepath.Join(b.dir, "longshore.db"), bolt.Options{MustExist: true}))(t)
	ended := time.Now().Add(time.Hour) // else the reaper ends it
	records, key := ledger.New(s, func() string { return "w" }), lifecycle.Key{Platform: "default", Instance: "i"}
	kept := lifecycle.Record{Key: key.Former("1"), State: lifecycle.Quarantined, Incarnation: "1", Provider: "demo", Due: ended,
		Kept: &lifecycle.Kept{Since: time.Now(), Until: ended}}
	enclosed := kept
	enclosed.Key, enclosed.State = key.Former("2"), lifecycle.Ready
	enclosed.Kept = &lifecycle.Kept{Name: "enclosed", Since: time.Now(), Until: ended}
	changes := []ledger.Change{ledger.Put(kept), ledger.Put(enclosed),
		ledger.PutReport(ledger.Report{Started: time.Now(), Ended: ended, Swept: &ledger.Swept{Redriven: 7}}, "1")}
	expect.OK(t, records.Commit(t.Context(), changes...))
	for sort, partition := range map[string]string{"FORMER#a#": "I#p#a", "FORMER#z#": "I#p#z",
		"REPORT#a": ledger.ReaperPartition} {
		r := store.Record{Key: store.Key{Partition: partition, Sort: sort}, Writer: "w", Schema: 1, Body: []byte("no JSON")}
		if partition != ledger.ReaperPartition {
			r.Due = ended
		}
		expect.OK(t, s.Commit(t.Context(), store.Put(r)))
	}
	expect.OK(t, s.Close())
	for _, runs := range []bool{false, true} {
		if runs {
			b.start()
		}
		for command, wants := range map[string][]string{
			"retained":          {"i@1", "in 59m", "not all records could be read (2 faults)", `"FORMER#a#"`, `"FORMER#z#"`},
			"reaper quarantine": {"enclosed", "demo", "released", "not all records could be read (2 faults)", `"FORMER#a#"`},
			"reaper report":     {"started again 7", "not all records could be read (1 faults)", `"REPORT#a"`},
		} {
			has(t, b.operate(2, strings.Fields(command)...), wants...)
		}
	}
}

// spoil changes the byte behind each place of a file where the text stands, if it may.
func spoil(t *testing.T, path, text string, may func(behind []byte) bool) {
	t.Helper()
	raw := expect.Get(os.ReadFile(path))(t)
	parts := bytes.Split(raw, []byte(text))
	if len(parts) == 1 {
		t.Fatalf("%q is not in %s", text, path)
	}
	for _, behind := range parts[1:] { // which are parts of raw
		if may(behind) {
			behind[0] ^= 1
		}
	}
	expect.OK(t, os.WriteFile(path, raw, 0o600))
}

// spoilRecord changes a byte of each value in the records' file that stands under a key which ends with the text.
func (b *bench) spoilRecord(text string) {
	b.Helper()
	// Behind the head; else it is a key that names a page.
	isHead := func(behind []byte) bool { return len(behind) > 17 && behind[16] < 4 && behind[17] != 0 }
	spoil(b.T, filepath.Join(b.dir, "longshore.db"), text, isHead)
}

// One damaged record of many costs no other: lists go around it and name it, whether a broker runs or not, and a rebuild
// keeps all that is whole. Nothing else is left of the demo's instances to derive the rest from.
func TestOneDamagedRecord(t *testing.T) {
	b := newBench(t)
	const many = 12
	instance := func(n int) string { return fmt.Sprintf("many-%02d", n) }
	bind := func(n, want int) string {
		t.Helper()
		return b.bind(instance(n), fmt.Sprintf("bound-%02d", n), want)
	}
	given := map[int]string{}
	for n := range many {
		b.provision(instance(n), "sync", 0, 201)
		given[n] = bind(n, 201)
	}
	b.stop()
	b.spoilRecord("#many-07INSTANCE")
	b.spoilRecord("#many-03BINDING#bound-03")

	lists := func() {
		t.Helper()
		said := b.operate(2, "instances")
		has(t, said, "many-06 ", "many-08 ", "many-11 ", `record "INSTANCE" of "I#`, "#many-07")
		expect.Never(t, "the list", said, "\nmany-07 ")
		has(t, b.operate(2, "bindings", "-o", "json"), `"bound-02"`, `"bound-04"`, `"BINDING#bound-03"`)
	}
	lists()
	b.start() // the rest is served
	lists()
	b.send("GET", "/v2/service_instances/many-06", "", 200)
	b.stop()

	said := b.operate(0, "rebuild", "--yes")
	has(t, said, "0 instances and 0 bindings have a record again", "These were damaged.", "#many-07", ".lost-")
	left := expect.Get(filepath.Glob(filepath.Join(b.dir, "longshore.db.lost-*")))(t)
	expect.Same(t, "files that were set aside", 1, len(left))
	has(t, b.operate(0, "fsck"), "nothing is damaged")
	b.start()
	for n := range many {
		switch path := "/v2/service_instances/" + instance(n); n {
		case 3:
			bind(n, 201)
		case 7:
			b.send("GET", path, "", 404)
		default:
			has(t, b.send("GET", path, "", 200), secretText)
			expect.Same(t, "the credentials", given[n], bind(n, 200))
		}
	}
}

// A broker starts although what runs on one record cannot go on.
func TestADamagedOperation(t *testing.T) {
	b := newBench(t)
	b.provision("slow-1", "async", 3600, 202)
	slow := b.provision("slow-2", "async", 3600, 202)
	b.stop()
	b.spoilRecord("#slow-1INSTANCE")
	b.start()
	has(t, b.operate(2, "operations", "--state", "running", "-o", "wide"), slow, "#slow-1")
	b.send("GET", "/v2/service_instances/slow-1/last_operation", "", 500)
	b.polled("slow-2", slow)
}

// No command opens a folder whose key is lost with another key, and each says what to do.
// With the right key nothing was lost; without it, rebuild keeps what needs no key.
func TestALostKey(t *testing.T) {
	for name, lose := range map[string]func(path string, key []byte) error{
		"Missing":  func(path string, _ []byte) error { return os.Remove(path) },
		"CutShort": func(path string, key []byte) error { return os.WriteFile(path, key[:7], 0o600) },
		"Empty":    func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"OneBit": func(path string, key []byte) error {
			return os.WriteFile(path, append([]byte{key[0] ^ 1}, key[1:]...), 0o600)
		},
		"OfAnother": func(path string, key []byte) error { return os.WriteFile(path, make([]byte, len(key)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.provision("ready-1", "sync", 0, 201)
			credentials := b.bind("ready-1", "bound-1", 201)
			slow := b.provision("slow-1", "async", 3600, 202)
			b.stop()
			path := filepath.Join(b.dir, "vault.key")
			key := expect.Get(os.ReadFile(path))(t)
			expect.OK(t, lose(path, key))

			for _, args := range [][]string{{"instances"}, {"bindings"}, {"operations"}, {"instances", "--watch"},
				{"retry", slow}, {"settle", slow, "--failed", "No.", "--yes"}, {"reaper", "report"}, {"reaper", "resume"}} {
				has(t, b.operate(1, args...), "restore vault.key from a backup", "longshore rebuild --yes")
			}
			var refused *advice.Error
			settings := embedded.Settings{Data: b.dir, Username: checkUser, Password: checkPassword}
			if _, err := embedded.Open(settings, testkit.Demo(), slog.New(slog.DiscardHandler)); !errors.As(err, &refused) {
				t.Fatalf("the broker starts: %v", err)
			}
			has(t, refused.Error(), "restore vault.key from a backup", "longshore rebuild --yes")

			expect.OK(t, os.WriteFile(path, key, 0o600))
			b.start()
			expect.Same(t, "the credentials, with the right key", credentials, b.bind("ready-1", "bound-1", 200))
			b.stop()

			expect.OK(t, lose(path, key))
			has(t, b.operate(0, "rebuild", "--yes"), "0 instances and 0 bindings have a record again",
				"parameters of these:\n  ready-1\n  slow-1\n",
				"rotate these, or unbind and bind again:\n  ready-1/bound-1\n", "have failed:\n  slow-1\n")
			if made, err := os.ReadFile(path); err != nil || string(made) == string(key) || len(made) != len(key) {
				t.Errorf("the key is not a new one: %v", err)
			}
			b.start()
			b.send("GET", "/v2/service_instances/ready-1", "", 200)
			for _, said := range []string{b.send("GET", "/v2/service_instances/ready-1/service_bindings/bound-1", "", 422),
				b.bind("ready-1", "bound-1", 422)} {
				has(t, said, "credentials of this service binding were lost")
			}
			has(t, b.polled("slow-1", slow), `"failed"`) // what could not go on
			b.bind("ready-1", "bound-1-next", 201)
			for _, path := range []string{"/service_bindings/bound-1", "/service_bindings/bound-1-next", ""} {
				b.remove("ready-1"+path, 200)
			}
			b.remove("slow-1", 202)
		})
	}
}

func TestFsck(t *testing.T) {
	remove := func(t *testing.T, path string) { expect.OK(t, os.Remove(path)) }
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { expect.OK(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	first := func(t *testing.T, path string) {
		raw := expect.Get(os.ReadFile(path))(t)
		raw[0] ^= 1
		write(string(raw))(t, path)
	}
	behind := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { spoil(t, path, text, func([]byte) bool { return true }) }
	}
	for name, test := range map[string]struct {
		file   string
		spoil  func(t *testing.T, path string)
		status int
		says   []string // on either output
	}{
		"Sound": {"", func(*testing.T, string) {}, 0, []string{"nothing is damaged: ", " records"}},
		"Record": {"longshore.db", behind(`"state":"`), 1,
			[]string{"damaged: longshore.db: ", "does not match its checksum", "restore the folder from a backup"}},
		"RecordsGone": {"longshore.db", remove, 1, []string{"damaged: longshore.db: ", "restore the folder"}},
		"Key":         {"vault.key", first, 1, []string{"damaged: vault.key: ", "restore the folder"}},
		"KeyGone":     {"vault.key", remove, 1, []string{"damaged: vault.key: "}},
		"Marker":      {"longshore.json", first, 1, []string{"damaged: longshore.json: "}},
		"Foreign":     {"longshore.json", behind(`"records": "`), 1, []string{"belong to another folder"}},
		"Logins":      {"credentials.json", write("x"), 1, []string{"damaged: credentials.json: "}},
		"Later":       {"longshore.json", write(`{"format": 9}`), 2, []string{"a newer version", "run that version"}},
		"Old": {"longshore.json", write(`{"identity": "i"}`), 2,
			[]string{"before the first release", "name an empty folder"}},
		"NoFolder": {"longshore.json", remove, 2, []string{"is not a data folder"}},
	} {
		t.Run(name, func(t *testing.T) { // one at a time: a child that begins holds all locks of this process for a moment
			b := newBench(t)
			b.provision("one", "sync", 0, 201)
			fails(t, 2, "is in use by another process: stop the broker", "fsck", "--data", b.dir)
			b.stop()
			test.spoil(t, filepath.Join(b.dir, test.file))
			before, err := os.ReadFile(filepath.Join(b.dir, "longshore.db"))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			status, out, diagnostics := called(t, nil, "fsck", "--data", b.dir)
			expect.Same(t, "exit status", test.status, status)
			has(t, out+diagnostics, test.says...)
			after, _ := os.ReadFile(filepath.Join(b.dir, "longshore.db"))
			expect.Same(t, "the records were changed", false, !bytes.Equal(before, after))
		})
	}
}
