package backup_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
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
	err := backup.File(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if left, _ := os.ReadDir(dir); !errors.Is(err, broken) || len(left) > 0 {
		t.Fatalf("a backup that broke: %v, and %v is there", err, left)
	}
	expect.OK(t, backup.File(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "whole")
		return err
	}))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; want it to be its owner's alone", info.Mode(), err)
	}
	problem := (*advice.Error)(nil)
	err = backup.File(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "another")
		return err
	})
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
