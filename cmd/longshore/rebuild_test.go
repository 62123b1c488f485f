package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// spoilRecord changes a byte of each value in the records' file that stands under a key
// which ends with the text.
func (b *bench) spoilRecord(text string) {
	b.Helper()
	path := filepath.Join(b.dir, "longshore.db")
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(raw, []byte(text)) {
		b.Fatalf("%q is not in %s: %v", text, path, err)
	}
	for at := 0; ; {
		next := bytes.Index(raw[at:], []byte(text))
		if next < 0 {
			break
		}
		at += next + len(text)
		// Behind the head; else it is a key that names a page.
		if times, version := raw[at+16], raw[at+17]; times < 4 && version != 0 {
			raw[at] ^= 1
		}
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		b.Fatal(err)
	}
}

// One damaged record of many costs no other: lists go around it and name it, whether a
// broker runs or not, and a rebuild keeps all that is whole. Nothing else is left of
// the demo's instances to derive the rest from.
func TestOneDamagedRecord(t *testing.T) {
	b := newBench(t)
	const many = 12
	path := func(n int) string {
		return fmt.Sprintf("/v2/service_instances/many-%02d/service_bindings/bound-%02d", n, n)
	}
	bind := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"parameters":{"note":%q}}`, b.service, b.plans["sync"], secretText)
	given := map[int]string{}
	for n := range many {
		b.provision(fmt.Sprintf("many-%02d", n), "sync", 0, 201)
		given[n] = b.send("PUT", path(n), bind, 201)
	}
	b.stop()
	b.spoilRecord("#many-07INSTANCE")
	b.spoilRecord("#many-03BINDING#bound-03")

	lists := func() {
		t.Helper()
		said := b.operate(2, "instances")
		has(t, said, "many-06 ", "many-08 ", "many-11 ", `record "INSTANCE" of "I#`, "#many-07")
		if strings.Contains(said, "\nmany-07 ") {
			t.Errorf("a damaged record is listed:\n%s", said)
		}
		has(t, b.operate(2, "bindings", "-o", "json"), `"bound-02"`, `"bound-04"`, `"BINDING#bound-03"`)
	}
	lists()
	b.start() // the rest is served
	lists()
	b.send("GET", "/v2/service_instances/many-06", "", 200)
	b.stop()

	said := b.operate(0, "rebuild", "--yes")
	has(t, said, "0 instances and 0 bindings have a record again", "These were damaged.", "#many-07", ".lost-")
	if left, err := filepath.Glob(filepath.Join(b.dir, "longshore.db.lost-*")); err != nil || len(left) != 1 {
		t.Errorf("set aside: %v %v", left, err)
	}
	has(t, b.operate(0, "fsck"), "nothing is damaged")
	b.start()
	for n := range many {
		switch instance := fmt.Sprintf("/v2/service_instances/many-%02d", n); n {
		case 3:
			b.send("PUT", path(n), bind, 201)
			continue
		case 7:
			b.send("GET", instance, "", 404)
			continue
		default:
			if got := b.send("GET", instance, "", 200); !strings.Contains(got, secretText) {
				t.Errorf("the parameters of instance %d: %s", n, got)
			}
		}
		if again := b.send("PUT", path(n), bind, 200); again != given[n] {
			t.Errorf("%s: the credentials are %s, and were %s", path(n), again, given[n])
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
	b.send("GET", "/v2/service_instances/slow-2/last_operation", "", 200)
}
