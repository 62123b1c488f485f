package e2e_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// run runs the program to its end, and gives its exit status and all that it printed.
func run(t testing.TB, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := command(env, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("running the program: %v", err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestCommandLine(t *testing.T) {
	taken := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	broken := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(broken, "offering.yaml"), []byte("id: x\nname: mine\nplanz: []\n"), 0o600))
	data := t.TempDir()
	serve := "serve --data " + data
	for name, tc := range map[string]struct {
		env, args string
		code      int
		want      []string // in what is printed
	}{
		"Version":      {"", "version", 0, []string{"longshore"}},
		"Help":         {"", "help", 0, []string{"longshore serve"}},
		"ServeHelp":    {"", "serve --help", 0, []string{"--data DIR"}},
		"Nothing":      {"", "", 2, []string{"longshore serve"}},
		"Unknown":      {"", "frobnicate", 2, []string{`"frobnicate"`, "longshore --help"}},
		"UnknownFlag":  {"", "serve --frobnicate", 2, []string{"frobnicate", "longshore serve --help"}},
		"Argument":     {"", "serve now", 2, []string{`"now"`}},
		"Listen":       {"", serve + " --listen x", 1, []string{"--listen", "127.0.0.1:8080"}},
		"PortInUse":    {"", serve + " --listen " + taken.Addr().String(), 1, []string{"--listen", "in use"}},
		"OnlyUser":     {"LONGSHORE_USERNAME=u", serve, 1, []string{"LONGSHORE_PASSWORD", "set both"}},
		"OnlyPassword": {"LONGSHORE_PASSWORD=p", serve, 1, []string{"LONGSHORE_USERNAME", "set both"}},
		"ColonInUser":  {"LONGSHORE_USERNAME=a:b LONGSHORE_PASSWORD=p", serve, 1, []string{"LONGSHORE_USERNAME", "colon"}},
		"Delay":        {"LONGSHORE_DEMO_DELAY=soon", serve, 1, []string{"LONGSHORE_DEMO_DELAY", `"soon"`, "3s"}},
		"NoDataName":   {"", "serve --data=", 1, []string{"--data"}},
		"NoOfferings": {"", serve + " --listen 127.0.0.1:0 --offerings /nonexistent", 1,
			[]string{"--offerings", "/nonexistent"}},
		"CatalogValid":   {"", "catalog validate", 0, []string{"demo: sync, async", "valid"}},
		"CatalogBroken":  {"", "catalog validate " + broken, 1, []string{"offering.yaml:3", "planz", "plans"}},
		"CatalogNothing": {"", "catalog", 2, []string{"validate"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := run(t, strings.Fields(tc.env), strings.Fields(tc.args)...)
			expect.Same(t, "exit status", tc.code, code)
			expect.Says(t, "what is printed", out, tc.want...)
			expect.Never(t, "what is printed", out, "panic")
		})
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) != 0 {
		t.Errorf("a start that was refused left %v in the data folder: %v", entries, err)
	}
}

// Two processes never share a data folder.
func TestDataFolderIsLocked(t *testing.T) {
	data := t.TempDir()
	p := start(t, data, credentials()...)
	code, out := run(t, credentials(), "serve", "--listen", "127.0.0.1:0", "--data", data)
	expect.Same(t, "exit status", 1, code)
	expect.Says(t, "what is printed", out, data, "in use")
	must(t, p.url, "PUT", instancePath("i"), provisionBody(planSync, `{}`), 201)
}

// A damaged data folder is refused with a message, never repaired by guessing, and never begun anew.
func TestDamagedDataFolder(t *testing.T) {
	whole, other := t.TempDir(), t.TempDir()
	p := start(t, whole, credentials()...)
	must(t, p.url, "PUT", instancePath("i"), provisionBody(planSync, `{"a":1}`), 201)
	p.ends(t, terminate)
	start(t, other, credentials()...).ends(t, terminate)
	const records, key, marker = "longshore.db", "vault.key", "longshore.json"
	cut := func(name string, size int64) func(dir string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, name), size) }
	}
	write := func(name, content string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) }
	}
	remove := func(names ...string) func(dir string) error {
		return func(dir string) (err error) {
			for _, name := range names {
				err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
			}
			return err
		}
	}
	// changed writes the file that a folder has as the function makes it.
	changed := func(of, name string, change func(content []byte)) func(dir string) error {
		content := expect.Get(os.ReadFile(filepath.Join(of, name)))(t)
		change(content)
		return write(name, string(content))
	}
	as := func([]byte) {}
	cases := map[string]func(dir string) error{
		"RecordsDeleted":   remove(records),
		"RecordsEmpty":     cut(records, 0),
		"RecordsCutShort":  cut(records, 5000),
		"RecordsCutInHalf": cut(records, 16384),
		"RecordsGarbage":   write(records, strings.Repeat("garbage!", 4096)),
		"RecordsScribbled": changed(whole, records, func(c []byte) { copy(c[4096:], bytes.Repeat([]byte{0xff}, 8192)) }),
		"RecordsOfAnother": changed(other, records, as),
		"KeyDeleted":       remove(key),
		"KeyCutShort":      cut(key, 7),
		"KeyOfAnother":     changed(other, key, as),

		"KeyWithOneBitChanged":    changed(whole, key, func(c []byte) { c[0] ^= 1 }),
		"MarkerGarbage":           write(marker, "{"),
		"MarkerAndRecordsDeleted": remove(marker, records),
		"MarkerAndKeyDeleted":     remove(marker, key),
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			expect.OK(t, os.CopyFS(dir, os.DirFS(whole)))
			expect.OK(t, damage(dir))
			before := listing(t, dir)
			code, out := run(t, credentials(), "serve", "--listen", "127.0.0.1:0", "--data", dir)
			expect.Same(t, "exit status", 1, code)
			expect.Says(t, "what is printed", out, dir, "restore")
			expect.Never(t, "what is printed", out, "panic", "goroutine")
			expect.Same(t, "the folder", before, listing(t, dir))
		})
	}
	// The folder that was copied from is still good.
	p = start(t, whole, credentials()...)
	must(t, p.url, "GET", instancePath("i"), "", 200)
}

// A folder of somebody else is not taken.
func TestForeignFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("mine"), 0o600))
	code, out := run(t, credentials(), "serve", "--listen", "127.0.0.1:0", "--data", dir)
	expect.Same(t, "exit status", 1, code)
	expect.Says(t, "what is printed", out, "thesis.txt", "--data")
}

// listing is the names and contents of a folder's files, for comparison.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	entries := expect.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		if e.IsDir() || e.Name() == "lock" {
			continue
		}
		raw := expect.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		out.WriteString(e.Name() + " " + strings.ToValidUTF8(string(raw[:min(len(raw), 64)]), "?") + "\n")
	}
	return out.String()
}
