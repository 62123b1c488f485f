package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/longshore/longshore/internal/test/expect"
)

// install runs the script as a pipe from curl does, and returns what it says.
func install(t *testing.T, url string, env ...string) (string, error) {
	t.Helper()
	script := expect.Get(os.Open("../install.sh"))(t)
	defer script.Close()
	c := exec.Command("sh")
	c.Stdin, c.Env = script, append([]string{"PATH=" + os.Getenv("PATH"), "LONGSHORE_URL=" + url}, env...)
	said, err := c.CombinedOutput()
	return string(said), err
}

func TestInstall(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(made(t).out)))
	defer server.Close()
	home, prefix := t.TempDir(), filepath.Join(t.TempDir(), "bin")
	for program, env := range map[string]string{
		filepath.Join(home, ".local/bin/longshore"): "HOME=" + home,
		filepath.Join(prefix, "longshore"):          "PREFIX=" + prefix,
	} {
		said, err := install(t, server.URL, env)
		if want := program + ": longshore version v0.1.0\n"; err != nil || !strings.HasPrefix(said, want) {
			t.Errorf("%s: %v\n%s, want %s", env, err, said, want)
		}
	}
}

// The script refuses an archive that was exchanged or is missing, and says so.
func TestInstallRefuses(t *testing.T) {
	archive := "longshore_v0.1.0_" + here.String() + ".tar.gz"
	good := contents(t, made(t).out)
	for name, test := range map[string]struct {
		reason string
		change func(map[string][]byte)
		says   string
	}{
		"Damaged":   {"one byte differs", func(f map[string][]byte) { f[archive][99]++ }, "does not have the checksum"},
		"Exchanged": {"an older archive", func(f map[string][]byte) { f[archive] = []byte("old") }, "does not have the checksum"},
		"Missing":   {"the archive is not there", func(f map[string][]byte) { delete(f, archive) }, "cannot be downloaded"},
		"NoSums":    {"nothing to verify by", func(f map[string][]byte) { delete(f, sums) }, "SUMS cannot be downloaded"},
		"Other": {"another system's alone", func(f map[string][]byte) {
			f[sums] = bytes.ReplaceAll(f[sums], []byte("_linux_"), []byte("_plan9_"))
		}, "names no archive for linux"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, prefix := t.TempDir(), filepath.Join(t.TempDir(), "bin")
			files := map[string][]byte{archive: bytes.Clone(good[archive]), sums: good[sums]}
			test.change(files)
			for file, content := range files {
				write(t, filepath.Join(dir, file), content)
			}
			server := httptest.NewServer(http.FileServer(http.Dir(dir)))
			defer server.Close()
			said, err := install(t, server.URL, "PREFIX="+prefix)
			if err == nil || !strings.Contains(said, test.says) {
				t.Errorf("%s: %v\n%s, want %q", test.reason, err, said, test.says)
			}
			if _, err := os.Stat(prefix); !os.IsNotExist(err) {
				t.Errorf("%s: something was installed", test.reason)
			}
		})
	}
}

// proxy serves the sources as the one version of the module that there is.
func proxy(t *testing.T, path, root string) *httptest.Server {
	t.Helper()
	var archive bytes.Buffer
	expect.OK(t, zip.CreateFromDir(&archive, module.Version{Path: path, Version: version}, root))
	served := http.NewServeMux()
	for name, content := range map[string]string{
		"list": version + "\n", version + ".mod": string(read(t, root, "go.mod")), version + ".zip": archive.String(),
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-11-24T12:00:00Z"}`, version),
	} {
		served.HandleFunc("/"+path+"/@v/"+name, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, content)
		})
	}
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	return server
}

// Go installs the program from a proxy, and it says which version it is. Other modules come from
// the machine's cache, into a cache of the test's own, so that none has this version for good.
func TestGoInstall(t *testing.T) {
	const path = "github.com/longshore/longshore"
	server := proxy(t, path, made(t).root)
	settings := expect.Get(output(t.Context(), "", nil, goCommand(), "env", "GOMODCACHE", "GOPROXY"))(t)
	cache, others, _ := strings.Cut(settings, "\n")
	dir := t.TempDir()
	env := append([]string{"GOBIN=" + filepath.Join(dir, "bin"), "GOMODCACHE=" + filepath.Join(dir, "modules"), "GOSUMDB=off",
		"GOPROXY=" + server.URL + ",file://" + cache + "/cache/download," + others}, here.environment()...)
	env = append(env, "GOFLAGS=-mod=mod -modcacherw -trimpath")
	expect.Get(output(t.Context(), dir, env, goCommand(), "install", path+"/cmd/longshore@"+version))(t)
	said := expect.Get(output(t.Context(), dir, nil, filepath.Join(dir, "bin/longshore"), "version"))(t)
	expect.Same(t, "the program says", "longshore version v0.1.0", said)
}
