package folder

import (
	"errors"
	"io/fs"

	"github.com/longshore/longshore/internal/base/filelock"
)

// Look is Open for callers that may not need to write: a folder that cannot be written to is opened read-only.
func Look(dir string, o Options) (*Folder, error) {
	f, err := Open(dir, o)
	if !unwritable(err) {
		return f, err
	}
	fail := fault(dir)
	f = o.folder(dir)
	f.ReadOnly = true
	if f.mark, err = markerOf(dir); err != nil {
		return nil, err
	}
	f.lock, err = lockToRead(f.Path(fileLock))
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fail("is in use by another process", "stop that one, or name another folder with --data", nil)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a lock file, no broker runs on the folder
		return nil, fail("cannot be locked", "allow it to be read, or name another with --data", err)
	}
	if err := f.openMarked(false); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
