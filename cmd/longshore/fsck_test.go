package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

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
	tests := map[string]struct {
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
	}
	for name, test := range tests {
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
			if after, _ := os.ReadFile(filepath.Join(b.dir, "longshore.db")); !bytes.Equal(before, after) {
				t.Error("the records were changed")
			}
		})
	}
}
