package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
)

// unpack unpacks an archive into a new folder, as the command's help says it.
func unpack(t *testing.T, packed io.Reader) (dir string) {
	t.Helper()
	dir = t.TempDir()
	tar := exec.Command("tar", "-xpf", "-", "-C", dir)
	tar.Stdin = packed
	said, err := tar.CombinedOutput()
	expect.OK(t, err, string(said))
	return dir
}

// A backup of all is a folder on which another broker starts: it knows the same
// logins, instances and credentials, whether a broker ran on the folder or not.
func TestABackupOfAllRestores(t *testing.T) {
	const binding = "i/service_bindings/b"
	dir := withInstances(t, "i")
	e := begun(t, dir)
	want := asked(t, e, "PUT", binding, demoOrder, 201)
	var running, stopped bytes.Buffer
	expect.OK(t, Backup(t.Context(), dir, backup.Wish{All: true}, &running))
	refused(t, "of a demo instance", dir, backup.Wish{Instance: "i"}, "")
	refused(t, "of no instance", dir, backup.Wish{Instance: "j"}, `"j"`)
	e.Close()
	expect.OK(t, Backup(t.Context(), dir, backup.Wish{All: true}, &stopped))
	refused(t, "of an instance while no broker runs", dir, backup.Wish{Instance: "i"}, "")
	for name, packed := range map[string]*bytes.Buffer{"running": &running, "stopped": &stopped} {
		restored := unpack(t, packed)
		if checked, err := folder.Check(t.Context(), restored); err != nil || checked.Wrong > 0 {
			t.Fatalf("%s: the restored folder: %v %v", name, checked.Problems, err)
		}
		e := begun(t, restored)
		expect.Same(t, name+": the binding of the restored folder", want, asked(t, e, "PUT", binding, demoOrder, 200))
		asked(t, e, "DELETE", binding+ofDemosPlan, "", 200)
		asked(t, e, "DELETE", "i"+ofDemosPlan, "", 200)
		e.Close()
	}
	expect.Same(t, "what backups have left", nil, expect.Get(filepath.Glob(filepath.Join(dir, ".backup-*")))(t))
}

// refused requires that a backup is refused, with these words.
func refused(t *testing.T, what, dir string, wish backup.Wish, words string) {
	t.Helper()
	err := Backup(t.Context(), dir, wish, io.Discard)
	if _, ok := errors.AsType[*operator.Refusal](err); !ok || !strings.Contains(err.Error(), words) {
		t.Errorf("a backup %s: %v", what, err)
	}
}

// dumping is a provider that saves nothing, and says of which instance it was asked.
type dumping struct {
	provider.Provider
	asked func(provider.Instance)
}

func (d dumping) Dump(_ context.Context, in provider.Instance, _ io.Writer) error {
	d.asked(in)
	return nil
}

// An undeleted instance has a thing whose name derives from a former life. A provider that is asked to save it is told that
// life: it would look for another name, and find nothing.
func TestABackupOfWhatWasUndeleted(t *testing.T) {
	e := begun(t, withInstances(t, "i"))
	defer e.Close()
	records, key := ledger.New(e.folder.Records, app.NewID), lifecycle.Key{Platform: e.Default.ID, Instance: "i"}
	r := expect.Get(records.Record(t.Context(), key, app.Now()))(t)
	r.Made.Origin = provider.Origin{Instance: "former", Incarnation: "life"}
	expect.OK(t, records.Commit(t.Context(), ledger.Put(r)))
	var saved []provider.Tags
	e.providers = map[string]wired.Provider{r.Provider: {Provider: dumping{asked: func(in provider.Instance) {
		saved = append(saved, provider.TagsOf(in))
	}}}}
	expect.OK(t, e.backup(t.Context(), backup.Wish{Instance: "i"}, io.Discard))
	expect.Same(t, "the things that are saved", []provider.Tags{{Broker: r.Made.Broker, Platform: key.Platform, Instance: "i",
		Incarnation: r.Incarnation, Origin: r.Made.Origin}}, saved)
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
	expect.OK(t, expect.Err(os.Lstat(filepath.Join(dir, "longshore.db"))))
}

// A server that outlived its broker is never copied by one that does not run it: its files are not of one moment.
func TestAServerThatIsNotTheBrokersIsNotCopied(t *testing.T) {
	dir := t.TempDir()
	e := begun(t, dir)
	data := filepath.Join(dir, app.ProviderPostgres, "data")
	expect.OK(t, errors.Join(os.MkdirAll(data, 0o700), os.WriteFile(filepath.Join(data, "postmaster.pid"), nil, 0o600)))
	refused(t, "while the broker runs", dir, backup.Wish{All: true}, "--postgres embedded")
	e.Close()
	refused(t, "while it does not", dir, backup.Wish{All: true}, "--postgres embedded")
}

// contents are the files that stand in a folder itself.
func contents(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	var all strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
			all.WriteString(path + "\n" + string(expect.Get(os.ReadFile(path))(t)) + "\n")
		}
	}
	return all.String()
}

// A folder that a version before the first release wrote has neither a console nor a backup, and is left as it is.
func TestCommandsRefuseAnOldFolder(t *testing.T) {
	dir := withInstances(t, "one")
	old := `{"format": 1, "identity": "of its records", "broker": "b", "check": "AAAA"}`
	expect.OK(t, os.WriteFile(filepath.Join(dir, "longshore.json"), []byte(old), 0o600))
	before := contents(t, dir)
	console := func(lost func(string)) error {
		_, _, err := Console(t.Context(), dir, "", nil, lost)
		return err
	}
	for name, err := range map[string]error{
		"Console": console(nil), "Rebuild": console(func(string) {}),
		"Backup": Backup(t.Context(), dir, backup.Wish{All: true}, nil),
	} {
		expect.Says(t, name, fmt.Sprint(err), "was written by a version before the first release")
	}
	expect.Same(t, "the folder", before, contents(t, dir))
}
