package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

func TestFsck(t *testing.T) {
	// spoil changes the byte after each place where the text is.
	spoil := func(name, text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, name)
			raw, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(raw, []byte(text)) {
				t.Fatalf("%q is not in %s: %v", text, name, err)
			}
			for at := 0; ; at++ {
				next := bytes.Index(raw[at:], []byte(text))
				if next < 0 || at > 0 && text == "" {
					break
				}
				at += next + len(text)
				raw[at] ^= 1
			}
			expect.OK(t, os.WriteFile(path, raw, 0o600))
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			expect.OK(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	write := func(name, text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	tests := map[string]struct {
		spoil  func(t *testing.T, dir string)
		status int
		says   []string // on either output
	}{
		"Sound": {func(*testing.T, string) {}, 0, []string{"nothing is damaged: ", " records"}},
		"Record": {spoil("longshore.db", `"state":"`), 1,
			[]string{"damaged: longshore.db: ", "does not match its checksum", "restore the folder from a backup"}},
		"RecordsGone": {remove("longshore.db"), 1, []string{"damaged: longshore.db: ", "restore the folder"}},
		"Key":         {spoil("vault.key", ""), 1, []string{"damaged: vault.key: ", "restore the folder"}},
		"KeyGone":     {remove("vault.key"), 1, []string{"damaged: vault.key: "}},
		"Marker":      {spoil("longshore.json", ""), 1, []string{"damaged: longshore.json: "}},
		"Foreign":     {spoil("longshore.json", `"records": "`), 1, []string{"belong to another folder"}},
		"Logins":      {write("credentials.json", "x"), 1, []string{"damaged: credentials.json: "}},
		"Later":       {write("longshore.json", `{"format": 9}`), 2, []string{"a newer version", "run that version"}},
		"Old": {write("longshore.json", `{"identity": "i"}`), 2,
			[]string{"before the first release", "name an empty folder"}},
		"NoFolder": {remove("longshore.json"), 2, []string{"is not a data folder"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { // one at a time: a child that begins holds all locks of this process for a moment
			b := newBench(t)
			b.send("PUT", "/v2/service_instances/one", `{"service_id":"`+b.service+`","plan_id":"`+b.plans["sync"]+
				`","organization_guid":"o","space_guid":"s","parameters":{"label":"x"}}`, 201)
			status, _, diagnostics := called(t, nil, "fsck", "--data", b.dir)
			if status != 2 || !strings.Contains(diagnostics, "is in use by another process: stop the broker") {
				t.Errorf("while the broker runs: exit status %d: %s", status, diagnostics)
			}
			b.stop()
			test.spoil(t, b.dir)
			before, err := os.ReadFile(filepath.Join(b.dir, "longshore.db"))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			status, out, diagnostics := called(t, nil, "fsck", "--data", b.dir)
			if status != test.status {
				t.Errorf("exit status %d, want %d: %s%s", status, test.status, out, diagnostics)
			}
			expect.Says(t, "what is printed", out+diagnostics, test.says...)
			if after, _ := os.ReadFile(filepath.Join(b.dir, "longshore.db")); !bytes.Equal(before, after) {
				t.Error("the records were changed")
			}
		})
	}
}
