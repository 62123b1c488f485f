package bolt

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/longshore/longshore/internal/base/filelock"
)

// usable returns why the file at the path cannot be used; nil if it can.
func usable(info fs.FileInfo, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrMissing
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("not a regular file: name one, or a name that is free")
	case info.Size() == 0:
		// A new file is never empty, and bbolt would take an empty one for new.
		return damaged("file is empty")
	}
	return nil
}

// prove reads the file's description of itself, and lets Check read beside this process.
func (s *Store) prove() error {
	if err := s.checkHead(); err != nil {
		return err
	}
	id, err := s.within(s.db.View, func(c *content) error {
		a, err := c.about()
		s.identity = a.identity
		if a.last != 0 {
			s.lastCommit = time.UnixMilli(a.last + 1).UTC()
		}
		return err
	})
	s.latest.Store(id)
	if err == nil && !s.how.ReadOnly {
		err = share(s.file)
	}
	return err
}

// share lets other processes read the file of a store that is open for writing. A process that
// wants to write needs the lock for itself, and still gets ErrLocked. Where no lock can be shared,
// Check reads only a file that no process has open for writing.
func share(file *os.File) error {
	err := filelock.Shared(file)
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return ErrLocked
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	}
	return err
}

// A page begins with its number, its kind (2 bytes at pageKind) and the number of further pages
// that it extends over (4 bytes at pageMore). Pages 0 and 1 are the metas. Behind the page's
// header, a meta has at metaFree the page with the list of free pages, at metaEnd the first
// page that is not in use, at metaTx the transaction, and at metaSum the checksum of all that.
const (
	pageKind, pageMore, pageHeader           = 8, 12, 16
	metaFree, metaEnd, metaTx, metaSum, meta = 32, 40, 48, 56, 64
	freeList                                 = 0x10
)

func (s *Store) checkHead() error { return checkHead(s.file, int64(s.db.Info().PageSize)) }

// checkHead proves what bbolt takes on trust before it writes: that both metas are whole, that the file
// is as long as they say, and that the list of free pages is one. bbolt makes do with one meta, but the
// other one is the state before the last commit, and going back to it would lose accepted changes. A
// crash leaves both metas whole, since a meta lies within one sector of the disk.
func checkHead(file *os.File, pageSize int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	native, pages := binary.NativeEndian, uint64(info.Size()/pageSize)
	var latest, free uint64
	for id := range int64(2) {
		var m [meta]byte
		if _, err := file.ReadAt(m[:], id*pageSize+pageHeader); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		sum := fnv.New64a()
		_, _ = sum.Write(m[:metaSum]) // never fails
		if native.Uint64(m[metaSum:]) != sum.Sum64() {
			return damaged("meta page %d is not whole", id)
		}
		if end := native.Uint64(m[metaEnd:]); end > pages {
			return damaged("file is cut off: %d of %d pages", pages, end)
		}
		if tx := native.Uint64(m[metaTx:]); tx >= latest {
			latest, free = tx, native.Uint64(m[metaFree:])
		}
	}
	var p [pageHeader]byte
	if _, err := file.ReadAt(p[:], int64(free)*pageSize); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if native.Uint64(p[:]) != free || native.Uint16(p[pageKind:]) != freeList || uint64(native.Uint32(p[pageMore:])) >= pages {
		return damaged("page %d is no list of free pages", free)
	}
	return nil
}

// openFile lets bbolt open a file that exists, and also returns the handle that bbolt holds.
func openFile(path string, how bbolt.Options) (*bbolt.DB, *os.File, error) {
	var db *bbolt.DB
	var file *os.File
	how.Timeout = lockWait
	how.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		var err error
		file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
		return file, err
	}
	panicked, err := recovered(func() error {
		var err error
		db, err = bbolt.Open(path, 0o600, &how)
		return err
	})
	if panicked && file != nil {
		err = errors.Join(err, file.Close())
	}
	switch {
	case err == nil:
		return db, file, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, ErrLocked
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, ErrMissing
	case panicked || errors.As(err, new(syscall.Errno)):
		return nil, nil, err
	default:
		return nil, nil, damaged("%v", err)
	}
}

// create makes the file under another name and links it to its own name, so that it is there whole
// or not at all. A link, unlike a rename, never replaces a file that another process has made and
// filled in the meantime. If create is killed, an unused file ending in ".new" stays behind.
func create(path string) (err error) {
	dir := filepath.Dir(path)
	temporary, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if e := os.Remove(temporary.Name()); err == nil {
			err = e
		}
		if err == nil {
			err = SyncFolder(dir)
		}
	}()
	defer func() { err = errors.Join(err, temporary.Close()) }()
	db, _, err := openFile(temporary.Name(), bbolt.Options{})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error { return (&content{tx: tx}).make(rand.Text()) })
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := temporary.Sync(); err != nil {
		return err
	}
	err = os.Link(temporary.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// SyncFolder puts the names of a folder's files on the disk, as syncing a file does with its content.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" { // Windows has no such call and needs none
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
