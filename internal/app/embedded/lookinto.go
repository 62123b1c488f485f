package embedded

import (
	"errors"
	"io/fs"

	"github.com/longshore/longshore/internal/base/advice"
)

// lookInto opens the data folder for whoever may have nothing to write: one that cannot
// be written is opened to be read.
func lookInto(dir string) (*folder, error) {
	f, err := openFolder(dir, false)
	if !unwritable(err) {
		return f, err
	}
	fail := func(what, mend string, cause error) error {
		return &advice.Error{Name: dataFolder(dir), What: what, Remedy: mend, Cause: cause}
	}
	f = &folder{dir: dir, clock: newClock(), toRead: true}
	mark, err := markerOf(dir)
	if err != nil {
		return nil, err
	}
	f.lock, err = lockToRead(f.path(fileLock))
	if errors.Is(err, errLocked) {
		return nil, fail("is in use by another process", "stop that one, or name another folder with --data", nil)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // no broker runs on one without
		return nil, fail("cannot be locked", "allow it to be read, or name another with --data", err)
	}
	if err := f.openMarked(mark, false, fail); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}
