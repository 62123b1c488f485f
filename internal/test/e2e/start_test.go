package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// run runs the program to its end, and gives its exit status and all that it printed.
func run(t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := command(env, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, out.String()
	case errors.As(err, &exit):
		return exit.ExitCode(), out.String()
	default:
		t.Fatalf("running the program: %v", err)
		return -1, ""
	}
}

func TestCommandLine(t *testing.T) {
	taken := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	broken := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(broken, "offering.yaml"), []byte("id: x\nname: mine\nplanz: []\n"), 0o600))
	data := t.TempDir()
	cases := map[string]struct {
		env  []string
		args []string
		code int
		want []string // in what is printed
	}{
		"Version":     {nil, []string{"version"}, 0, []string{"longshore"}},
		"Help":        {nil, []string{"help"}, 0, []string{"longshore serve"}},
		"ServeHelp":   {nil, []string{"serve", "--help"}, 0, []string{"--data DIR"}},
		"Nothing":     {nil, nil, 2, []string{"longshore serve"}},
		"Unknown":     {nil, []string{"frobnicate"}, 2, []string{`"frobnicate"`, "longshore --help"}},
		"UnknownFlag": {nil, []string{"serve", "--frobnicate"}, 2, []string{"frobnicate", "longshore serve --help"}},
		"Argument":    {nil, []string{"serve", "now"}, 2, []string{`"now"`}},
		"Listen":      {nil, []string{"serve", "--listen", "x", "--data", data}, 1, []string{"--listen", "127.0.0.1:8080"}},
		"PortInUse": {nil, []string{"serve", "--listen", taken.Addr().String(), "--data", data}, 1,
			[]string{"--listen", "in use"}},
		"OnlyUser": {[]string{"LONGSHORE_USERNAME=u"}, []string{"serve", "--data", data}, 1,
			[]string{"LONGSHORE_PASSWORD", "set both"}},
		"OnlyPassword": {[]string{"LONGSHORE_PASSWORD=p"}, []string{"serve", "--data", data}, 1,
			[]string{"LONGSHORE_USERNAME", "set both"}},
		"ColonInUser": {[]string{"LONGSHORE_USERNAME=a:b", "LONGSHORE_PASSWORD=p"}, []string{"serve", "--data", data}, 1,
			[]string{"LONGSHORE_USERNAME", "colon"}},
		"Delay": {[]string{"LONGSHORE_DEMO_DELAY=soon"}, []string{"serve", "--data", data}, 1,
			[]string{"LONGSHORE_DEMO_DELAY", `"soon"`, "3s"}},
		"NoDataName": {nil, []string{"serve", "--data", ""}, 1, []string{"--data"}},
		"NoOfferings": {nil, []string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--offerings", "/nonexistent"}, 1,
			[]string{"--offerings", "/nonexistent"}},
		"CatalogValid":   {nil, []string{"catalog", "validate"}, 0, []string{"demo: sync, async", "valid"}},
		"CatalogBroken":  {nil, []string{"catalog", "validate", broken}, 1, []string{"offering.yaml:3", "planz", "plans"}},
		"CatalogNothing": {nil, []string{"catalog"}, 2, []string{"validate"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out := run(t, tc.env, tc.args...)
			expect.Same(t, "exit status", tc.code, code)
			expect.Says(t, "what is printed", out, tc.want...)
			if strings.Contains(out, "panic") || t.Failed() {
				t.Errorf("it said:\n%s", out)
			}
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
	if code != 1 || !strings.Contains(out, data) || !strings.Contains(out, "in use") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	must(t, p.url, "PUT", instancePath("i"), provisionBody(planSync, `{}`), 201)
}

// A damaged data folder is refused with a message, never repaired by guessing, and never begun anew.
func TestDamagedDataFolder(t *testing.T) {
	whole := t.TempDir()
	p := start(t, whole, credentials()...)
	must(t, p.url, "PUT", instancePath("i"), provisionBody(planSync, `{"a":1}`), 201)
	if code := p.stop(t, terminate); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	other := t.TempDir()
	if code := start(t, other, credentials()...).stop(t, terminate); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	records := func(dir string) string { return filepath.Join(dir, "longshore.db") }
	write := func(path string, content []byte) error { return os.WriteFile(path, content, 0o600) }
	cases := map[string]func(dir string) error{
		"RecordsDeleted":   func(dir string) error { return os.Remove(records(dir)) },
		"RecordsEmpty":     func(dir string) error { return os.Truncate(records(dir), 0) },
		"RecordsCutShort":  func(dir string) error { return os.Truncate(records(dir), 5000) },
		"RecordsCutInHalf": func(dir string) error { return os.Truncate(records(dir), 16384) },
		"RecordsGarbage":   func(dir string) error { return write(records(dir), bytes.Repeat([]byte("garbage!"), 4096)) },
		"RecordsScribbled": func(dir string) error {
			f, err := os.OpenFile(records(dir), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 8192), 4096)
			return errors.Join(err, f.Close())
		},
		"RecordsOfAnother": func(dir string) error { return copyFile(records(other), records(dir)) },
		"KeyDeleted":       func(dir string) error { return os.Remove(filepath.Join(dir, "vault.key")) },
		"KeyCutShort":      func(dir string) error { return os.Truncate(filepath.Join(dir, "vault.key"), 7) },
		"KeyOfAnother": func(dir string) error {
			return copyFile(filepath.Join(other, "vault.key"), filepath.Join(dir, "vault.key"))
		},
		"KeyWithOneBitChanged": func(dir string) error {
			key, err := os.ReadFile(filepath.Join(dir, "vault.key"))
			if err != nil {
				return err
			}
			key[0] ^= 1
			return write(filepath.Join(dir, "vault.key"), key)
		},
		"MarkerGarbage": func(dir string) error { return write(filepath.Join(dir, "longshore.json"), []byte("{")) },
		"MarkerAndRecordsDeleted": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "longshore.json")), os.Remove(records(dir)))
		},
		"MarkerAndKeyDeleted": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "longshore.json")), os.Remove(filepath.Join(dir, "vault.key")))
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			expect.OK(t, os.CopyFS(dir, os.DirFS(whole)))
			expect.OK(t, damage(dir))
			before := listing(t, dir)
			code, out := run(t, credentials(), "serve", "--listen", "127.0.0.1:0", "--data", dir)
			if code != 1 || !strings.Contains(out, dir) || strings.Contains(out, "panic") || strings.Contains(out, "goroutine") {
				t.Errorf("exit status %d:\n%s", code, out)
			}
			expect.Says(t, "what is printed", out, "restore")
			if after := listing(t, dir); after != before {
				t.Errorf("the folder was changed: before\n%safter\n%s", before, after)
			}
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
	if code != 1 || !strings.Contains(out, "thesis.txt") || !strings.Contains(out, "--data") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
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
