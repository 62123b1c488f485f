package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/records/store/bolt"
)

// File writes a new file, whole or not at all, that only its owner can read.
func File(path string, write func(io.Writer) error) (err error) {
	fail := func(what, mend string, cause error) error {
		return &advice.Error{Name: fmt.Sprintf("file %q", path), What: what, Remedy: mend, Cause: cause}
	}
	free := func() error {
		if _, err := os.Lstat(path); err == nil {
			return fail("is there already", "name one that is not: no backup is written over", nil)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fail("cannot be written", "name one that can", err)
		}
		return nil
	}
	if err := free(); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*") // mode 0600
	if err != nil {
		return fail("cannot be written", "name one in a folder that is there and allows it", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	buffered := bufio.NewWriterSize(f, 1<<20)
	if err := write(buffered); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(buffered.Flush(), f.Sync(), f.Close()); err != nil {
		return fail("cannot be written to its end", "make room, or name one where there is some", err)
	}
	if err := free(); err != nil { // another one may have been written meanwhile: a backup takes long
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fail("cannot be written", "name one that can", err)
	}
	return bolt.SyncFolder(filepath.Dir(path))
}
