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
	if err := usable(info, err); err != nil {
		return nil, err
	}
	if err := verify(path); err != nil {
		return nil, err
	}
	db, file, err := openFile(path, o.readOnly)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, readOnly: o.readOnly, db: db, file: file, writing: make(chan struct{}, 1), clock: o.clock}
	if err := s.learn(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// usable judges what stands at the path.
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

// learn reads what the file says of itself.
func (s *Store) learn() error {
	id, err := s.within(s.db.View, func(_ *bbolt.Tx, c content) error {
		about, err := c.whose()
		if err != nil {
			return err
		}
		s.identity = string(about.identity)
		s.lastCommit, err = c.lastCommit()
		return err
	})
	s.latest.Store(id)
	return err
}

// verify proves the metas and the list of free pages before bbolt relies on them
// for writing. Nobody writes to the file meanwhile: opening it to read locks it to
// writers.
func verify(path string) error {
	db, file, err := openFile(path, true)
	if err != nil {
		return err
	}
	s := &Store{path: path, db: db, file: file}
	_, err = recovered(func() error {
		return db.View(func(tx *bbolt.Tx) error { return s.checkHead(pagesOf(tx)) })
	})
	return errors.Join(err, db.Close())
}

// checkHead proves the metas and the list of free pages.
func (s *Store) checkHead(p pages) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	_, err = p.checkHead(uint64(info.Size()) / p.size)
	return err
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
