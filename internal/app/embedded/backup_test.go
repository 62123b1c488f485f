package embedded

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// unpack unpacks an archive into a new folder.
func unpack(t *testing.T, packed io.Reader) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		expect.OK(t, err)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			expect.OK(t, os.MkdirAll(path, h.FileInfo().Mode()))
			continue
		}
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		content, err := io.ReadAll(archive)
		expect.OK(t, err)
		expect.OK(t, os.WriteFile(path, content, h.FileInfo().Mode()))
	}
}

func begun(t *testing.T, dir string) *Broker {
	t.Helper()
	e, err := Open(Settings{Data: dir, Getenv: func(string) string { return "" }}, testkit.Demo(),
		slog.New(slog.DiscardHandler))
	expect.OK(t, err)
	return e
}

// withInstances is a data folder with instances of those ids, on which no broker runs.
func withInstances(t *testing.T, ids ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	e := begun(t, dir)
	defer e.Close()
	service, plan := synchronous(t, e)
	for _, id := range ids {
		asked(t, e, "PUT", "/v2/service_instances/"+id,
			`{"service_id":"`+service+`","plan_id":"`+plan+`","organization_guid":"o","space_guid":"s"}`)
	}
	return dir
}

// asked sends a request of the default platform and gives the answer.
func asked(t *testing.T, e *Broker, method, path, body string) string {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.SetBasicAuth(e.Default.Username, e.Default.Password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	e.Handler.ServeHTTP(w, r)
	if w.Code >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.String()
}

// A backup of all is a folder on which another broker starts: it knows the same
// logins, instances and credentials, whether a broker ran on the folder or not.
func TestABackupOfAllRestores(t *testing.T) {
	dir := t.TempDir()
	e := begun(t, dir)
	service, plan := synchronous(t, e)
	ids := `{"service_id":"` + service + `","plan_id":"` + plan + `","organization_guid":"o","space_guid":"s"}`
	asked(t, e, "PUT", "/v2/service_instances/i", ids)
	const binding = "/v2/service_instances/i/service_bindings/b"
	want := asked(t, e, "PUT", binding, ids)
	var running, stopped bytes.Buffer
	expect.OK(t, Backup(t.Context(), dir, backup.Wish{All: true}, &running))
	refusal := (*operator.Refusal)(nil)
	if err := Backup(t.Context(), dir, backup.Wish{Instance: "i"}, io.Discard); !errors.As(err, &refusal) {
		t.Errorf("a backup of a demo instance: %v", err)
	}
	err := Backup(t.Context(), dir, backup.Wish{Instance: "j"}, io.Discard)
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), `"j"`) {
		t.Errorf("a backup of no instance: %v", err)
	}
	e.Close()
	expect.OK(t, Backup(t.Context(), dir, backup.Wish{All: true}, &stopped))
	if err := Backup(t.Context(), dir, backup.Wish{Instance: "i"}, io.Discard); !errors.As(err, &refusal) {
		t.Errorf("a backup of an instance while no broker runs: %v", err)
	}
	for name, packed := range map[string]*bytes.Buffer{"running": &running, "stopped": &stopped} {
		restored := unpack(t, packed)
		if checked, err := folder.Check(t.Context(), restored); err != nil || checked.Wrong > 0 {
			t.Fatalf("%s: the restored folder: %v %v", name, checked.Problems, err)
		}
		e := begun(t, restored)
		expect.Same(t, fmt.Sprintf("%s: the binding of the restored folder", name), want, asked(t, e, "PUT", binding, ids))
		asked(t, e, "DELETE", binding+"?service_id="+service+"&plan_id="+plan, "")
		asked(t, e, "DELETE", "/v2/service_instances/i?service_id="+service+"&plan_id="+plan, "")
		e.Close()
	}
	left, err := filepath.Glob(filepath.Join(dir, ".backup-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("backups have left %v %v", left, err)
	}
}

// A backup whose process dies leaves files with secrets: the next start removes them.
func TestWhatABackupLeavesIsRemoved(t *testing.T) {
	dir := t.TempDir()
	begun(t, dir).Close()
	err := os.MkdirAll(filepath.Join(dir, ".backup-1", "in"), 0o700)
	expect.OK(t, errors.Join(err, os.WriteFile(filepath.Join(dir, ".backup-2"), nil, 0o600)))
	begun(t, dir).Close()
	for _, name := range []string{".backup-1", ".backup-2"} {
		expect.Fails(t, name, os.ErrNotExist, expect.Err(os.Lstat(filepath.Join(dir, name))))
	}
	if _, err := os.Lstat(filepath.Join(dir, "longshore.db")); err != nil {
		t.Error(err)
	}
}

// A server that outlived its broker is never copied by one that does not run it: its files
// are not of one moment.
func TestAServerThatIsNotTheBrokersIsNotCopied(t *testing.T) {
	dir := t.TempDir()
	e := begun(t, dir)
	data := filepath.Join(dir, app.ProviderPostgres, "data")
	expect.OK(t, errors.Join(os.MkdirAll(data, 0o700), os.WriteFile(filepath.Join(data, "postmaster.pid"), nil, 0o600)))
	for _, when := range []string{"running", "stopped"} {
		refusal, err := (*operator.Refusal)(nil), Backup(t.Context(), dir, backup.Wish{All: true}, io.Discard)
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "--postgres embedded") {
			t.Errorf("%s: %v", when, err)
		}
		if when == "running" {
			e.Close()
		}
	}
}

// synchronous gives a plan of the demo that answers at once.
func synchronous(t *testing.T, e *Broker) (service, plan string) {
	t.Helper()
	for _, o := range e.offered.Offerings() {
		for _, p := range o.Plans {
			if p.Name == "sync" {
				return o.ID, p.ID
			}
		}
	}
	t.Fatal("the demo has no plan sync")
	return "", ""
}
