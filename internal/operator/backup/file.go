package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	clearBeside(path)
	f, held, err := begin(filepath.Dir(path))
	if err != nil {
		return fail("cannot be written", "name one in a folder that is there and allows it", err)
	}
	defer func() { _, _ = held.Close(), os.Remove(f.Name()) }()
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

// partial is the prefix of the hidden files beside their targets that File writes. Those that a backup makes in a data folder,
// which nobody locks, do not have it.
const partial = unfinished + "of-"

// begin makes a hidden file in a folder, and holds a lock on it where the system has any: no other backup takes the file for
// one of a process that was killed. One that has taken it before it was locked removes it: begin then makes another.
func begin(dir string) (f, held *os.File, err error) {
	for {
		if f, err = os.CreateTemp(dir, partial+"*"); err != nil { // mode 0600
			return nil, nil, err
		}
		held, err = lock(f.Name())
		if _, gone := os.Lstat(f.Name()); gone == nil && !errors.Is(err, errLocked) {
			return f, held, nil
		}
		_, _ = held.Close(), f.Close()
	}
}

// clearBeside removes what processes that were killed have left beside a target: it may be large, and holds secrets. What
// cannot be removed, such as another user's, stays.
func clearBeside(path string) {
	dir := filepath.Dir(path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partial) && e.Type().IsRegular() {
			if left, err := lock(filepath.Join(dir, e.Name())); err == nil {
				_, _ = os.Remove(left.Name()), left.Close()
			}
		}
	}
}
