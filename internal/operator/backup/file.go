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
	"github.com/longshore/longshore/internal/base/filelock"
	"github.com/longshore/longshore/internal/records/store/bolt"
)

// File writes a new file, whole or not at all, that only its owner can read.
func File(path string, write func(io.Writer) error) (err error) {
	fail := func(what, mend string, cause error) error {
		return &advice.Error{Name: fmt.Sprintf("file %q", path), What: what, Remedy: mend, Cause: cause}
	}
	free := func() error {
		if _, err := os.Lstat(path); err == nil {
			return fail("is there already", "name a new one: a backup overwrites no file", nil)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fail("cannot be written", "name one that can", err)
		}
		return nil
	}
	if err := free(); err != nil {
		return err
	}
	clearBeside(path)
	f, err := begin(filepath.Dir(path))
	if err != nil {
		return fail("cannot be written", "name one in a folder that is there and allows it", err)
	}
	defer func() { _, _ = os.Remove(f.Name()), f.Close() }()
	buffered := bufio.NewWriterSize(f, 1<<20)
	if err := write(buffered); err != nil {
		return err
	}
	if err := errors.Join(buffered.Flush(), f.Sync()); err != nil {
		return fail("cannot be written to its end", "free space, or name one on a disk with free space", err)
	}
	if err := free(); err != nil { // another one may have been written meanwhile: a backup takes long
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil { // while it is locked
		return fail("cannot be written", "name one that can", err)
	}
	return bolt.SyncFolder(filepath.Dir(path))
}

// partial is the prefix of the hidden files beside their targets that File writes. Those that a backup makes in a data folder,
// which nobody locks, do not have it.
const partial = unfinished + "of-"

// begin makes a hidden file in a folder, and holds a lock on it where the system has any: no other backup takes the file for
// one of a process that was killed. Another backup may do so before the file is locked, and remove it: begin then makes another.
func begin(dir string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, partial+"*") // mode 0600
		if err != nil {
			return nil, err
		}
		locked := filelock.Exclusive(f)
		if _, gone := os.Lstat(f.Name()); gone == nil && !errors.Is(locked, filelock.ErrLocked) {
			return f, nil
		}
		_ = f.Close()
	}
}

// clearBeside removes the files that killed processes have left beside a target: they may be large, and hold secrets. A file
// that cannot be removed, such as another user's, stays, and so does every one where the system has no locks.
func clearBeside(path string) {
	dir := filepath.Dir(path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partial) && e.Type().IsRegular() {
			if left, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0); err == nil {
				if filelock.Exclusive(left) == nil {
					_ = os.Remove(left.Name())
				}
				_ = left.Close()
			}
		}
	}
}
