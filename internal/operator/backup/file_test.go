package backup_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestFileIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "saved")
	broken := errors.New("broken")
	writes := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, failed := io.WriteString(w, text)
			return errors.Join(failed, err)
		}
	}
	expect.Fails(t, "a backup that broke", broken, backup.File(path, writes("half", broken)))
	expect.Same(t, "what is left of it", 0, len(expect.Get(os.ReadDir(dir))(t)))
	expect.OK(t, backup.File(path, writes("whole", nil)))
	expect.Same(t, "the file's mode, its owner's alone", 0o600, expect.Get(os.Stat(path))(t).Mode().Perm())
	problem := (*advice.Error)(nil)
	err := backup.File(path, writes("another", nil))
	if content, _ := os.ReadFile(path); !errors.As(err, &problem) || string(content) != "whole" {
		t.Errorf("a second backup into the file: %v, and it holds %q", err, content)
	}
	meanwhile := filepath.Join(dir, "meanwhile")
	err = backup.File(meanwhile, func(io.Writer) error { return os.WriteFile(meanwhile, []byte("the first"), 0o600) })
	if content, _ := os.ReadFile(meanwhile); !errors.As(err, &problem) || string(content) != "the first" {
		t.Errorf("a backup beside another one that ends first: %v, and the file holds %q", err, content)
	}
	if err := backup.File(filepath.Join(dir, "none", "saved"), func(io.Writer) error { return nil }); !errors.As(err, &problem) {
		t.Errorf("a backup into a folder that is not there: %v", err)
	}
}

// A process that is killed leaves what it has written: the next backup removes that, and nothing that another one writes now.
func TestWhatAKilledBackupLeftIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hidden := func() (names []string) {
		for _, e := range expect.Get(os.ReadDir(dir))(t) {
			if strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
		return names
	}
	save := func(name string, meanwhile func()) {
		t.Helper()
		expect.OK(t, backup.File(filepath.Join(dir, name), func(io.Writer) error {
			meanwhile()
			return nil
		}), name)
	}
	folders := filepath.Join(dir, ".backup-1") // as one of a data folder that runs now
	expect.OK(t, os.WriteFile(folders, nil, 0o600))
	var left string
	save("first", func() { left = hidden()[1] })
	expect.OK(t, os.WriteFile(filepath.Join(dir, left), []byte("half"), 0o600))
	save("second", func() {
		running := hidden()
		expect.Same(t, "files that are written", 2, len(running))
		expect.Never(t, "files that are written", strings.Join(running, " "), left)
		save("third", func() { expect.Same(t, "files that are written at once", 3, len(hidden())) })
		expect.Same(t, "files that are written, after another backup", running, hidden())
	})
	expect.Same(t, "what is left", []string{".backup-1"}, hidden())
}
