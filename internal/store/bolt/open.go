package bolt

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

func open(path string, o options) (*Store, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !o.mustExist {
		if err := create(path); err != nil {
			return nil, err
		}
		info, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrMissing
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file: name one, or a name that is free")
	case info.Size() == 0:
		// A new file is never empty, and bbolt would take an empty one for new.
		return nil, damaged("file is empty")
	}
	if err := verify(path); err != nil {
		return nil, err
	}
	db, file, err := openFile(path, false)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, db: db, file: file, writing: make(chan struct{}, 1), clock: o.clock}
	panicked, err := recovered(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			b, err := openBuckets(tx)
			if err != nil {
				return err
			}
			s.latest.Store(int64(tx.ID()))
			if s.identity, err = b.check(); err == nil {
				s.lastCommit, err = b.lastCommit()
			}
			return err
		})
	})
	s.broken.Store(panicked)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// verify reads the file's pages before bbolt does: bbolt trusts them, and may
// loop, run out of memory or overwrite a record where they are not right.
// Nobody writes to the file meanwhile: opening it to read locks it to writers.
func verify(path string) error {
	db, _, err := openFile(path, true)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err == nil {
		err = checkPages(file, db.Info().PageSize)
		err = errors.Join(err, file.Close())
	}
	return errors.Join(err, db.Close())
}

// openFile has bbolt open a file that exists, and returns the handle that
// bbolt holds beside it.
func openFile(path string, readOnly bool) (*bbolt.DB, *os.File, error) {
	var db *bbolt.DB
	var file *os.File
	panicked, err := recovered(func() error {
		var err error
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			ReadOnly: readOnly,
			Timeout:  lockWait,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				var err error
				file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
				return file, err
			},
		})
		return err
	})
	if panicked && file != nil {
		err = errors.Join(err, file.Close())
	}
	var system syscall.Errno
	switch {
	case err == nil:
		return db, file, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, ErrLocked
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, ErrMissing
	case panicked || errors.As(err, &system):
		return nil, nil, err
	default:
		return nil, nil, damaged("%v", err)
	}
}

// create makes the file under another name and links it to its own, so that
// it is there whole or not at all. A link, unlike a rename, never replaces a
// file that another process has made and filled in the meantime. If it is
// killed, a file ending in ".new" stays behind, which nobody reads.
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
			err = syncFolder(dir)
		}
	}()
	defer func() { err = errors.Join(err, temporary.Close()) }()
	db, _, err := openFile(temporary.Name(), false)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error { return makeBuckets(tx, rand.Text()) })
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

// syncFolder puts a file's name on the disk, as syncing the file does its
// content.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" { // which has no such call and needs none
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
