package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/platforms"
	"github.com/longshore/longshore/internal/store/bolt"
	"github.com/longshore/longshore/internal/vault"
)

// What the data folder holds.
const (
	fileMarker      = "longshore.json" // written last: the folder is whole
	fileRecords     = "longshore.db"
	fileKey         = "vault.key"
	fileLock        = "lock"
	fileCredentials = "credentials.json"
	folderDemo      = "demo"
)

// A folder is the embedded broker's data folder, open and held by this process
// alone.
type folder struct {
	dir     string
	lock    *os.File
	records *bolt.Store
	vault   *vault.Local
}

// marker says that the folder was set up to its end, and which records belong
// to it. With it, whatever is missing was lost: nothing is ever made anew.
type marker struct {
	Format   int    `json:"format"`
	Identity string `json:"identity"`
}

const folderFormat = 1

// A FolderError says why a data folder cannot be used, and what to do.
type FolderError struct {
	Dir, What, Remedy string
	Cause             error
}

func (e *FolderError) Error() string {
	s := fmt.Sprintf("data folder %q %s: %s", e.Dir, e.What, e.Remedy)
	if e.Cause != nil {
		s += fmt.Sprintf(" (%v)", e.Cause)
	}
	return s
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *FolderError) Unwrap() error { return e.Cause }

// openFolder opens the data folder, or sets up an empty one. Records that are
// lost end it, unless they are to be begun anew.
func openFolder(dir string, anew bool) (_ *folder, err error) {
	f := &folder{dir: dir}
	fail := func(what, remedy string, cause error) error {
		return &FolderError{Dir: dir, What: what, Remedy: remedy, Cause: cause}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail("cannot be made", "name another with --data, or allow this one to be written", err)
	}
	f.lock, err = lockFile(filepath.Join(dir, fileLock))
	if errors.Is(err, errLocked) {
		return nil, fail("is in use by another process", "stop that one, or name another folder with --data", nil)
	}
	if err != nil {
		return nil, fail("cannot be locked", "allow it to be written, or name another with --data", err)
	}
	defer func() {
		if err != nil {
			f.close()
		}
	}()

	mark, found, err := readMarker(f.path(fileMarker))
	if err != nil {
		return nil, fail("is damaged: "+fileMarker+" cannot be read", restore, err)
	}
	if !found {
		if err := f.setUp(); err != nil {
			return nil, err
		}
		return f, nil
	}
	if f.vault, err = vault.ReadKeyFile(f.path(fileKey)); err != nil {
		return nil, fail("is damaged: the vault's key cannot be read", restore, err)
	}
	err = f.openRecords(mark)
	if anew && (errors.Is(err, bolt.ErrMissing) || errors.Is(err, bolt.ErrDamaged) || errors.Is(err, errForeign)) {
		err = f.beginRecords()
	}
	if err != nil {
		return nil, fail("is damaged: the records cannot be read", restore, err)
	}
	return f, nil
}

const restore = "restore the folder from a backup; without one, `longshore rebuild --yes` gives a record to what exists; " +
	"to begin anew and forget every instance, name an empty folder with --data"

var errForeign = errors.New("they belong to another folder")

func (f *folder) openRecords(mark marker) (err error) {
	if f.records, err = bolt.Open(f.path(fileRecords), bolt.MustExist()); err != nil {
		return err
	}
	if f.records.Identity() != mark.Identity {
		return errForeign
	}
	return nil
}

// beginRecords sets aside what is left of the records and begins new ones. If it
// is stopped on the way, these are another folder's to whoever opens it next.
func (f *folder) beginRecords() (err error) {
	if f.records != nil {
		_ = f.records.Close()
		f.records = nil
	}
	aside := f.path(fileRecords) + ".lost-" + now().Format("20060102T150405.000")
	if err := os.Rename(f.path(fileRecords), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if f.records, err = bolt.Open(f.path(fileRecords)); err != nil {
		return err
	}
	return writeJSON(f.path(fileMarker), marker{Format: folderFormat, Identity: f.records.Identity()})
}

// setUp makes what a new folder holds. It may be stopped at any point and
// begun again; the marker comes last.
func (f *folder) setUp() error {
	fail := func(what, remedy string, cause error) error {
		return &FolderError{Dir: f.dir, What: what, Remedy: remedy, Cause: cause}
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fail("cannot be listed", "allow it to be read, or name another with --data", err)
	}
	hasRecords, hasKey := false, false
	for _, e := range entries {
		hasRecords = hasRecords || e.Name() == fileRecords
		hasKey = hasKey || e.Name() == fileKey
		if !slices.Contains([]string{fileLock, fileKey, fileRecords, fileControl}, e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			return fail(fmt.Sprintf("has no %s but holds %q", fileMarker, e.Name()),
				"it is not a data folder, or was damaged; name an empty folder with --data, or restore this one", nil)
		}
	}
	if hasRecords && !hasKey {
		return fail("is damaged: it has records but no key", restore, nil)
	}
	if err := vault.CreateKeyFile(f.path(fileKey)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail("cannot be set up", "allow it to be written, or name another with --data", err)
	}
	if f.vault, err = vault.ReadKeyFile(f.path(fileKey)); err != nil {
		return fail("is damaged: the vault's key cannot be read", restore, err)
	}
	if f.records, err = bolt.Open(f.path(fileRecords)); err != nil {
		return fail("cannot be set up", restore, err)
	}
	if err := writeJSON(f.path(fileMarker), marker{Format: folderFormat, Identity: f.records.Identity()}); err != nil {
		return fail("cannot be set up", "allow it to be written, or name another with --data", err)
	}
	return nil
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) close() {
	if f.records != nil {
		_ = f.records.Close()
	}
	if f.lock != nil {
		_ = f.lock.Close() // which gives up the lock
	}
}

func readMarker(path string) (m marker, found bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, false, err
	}
	if m.Format != folderFormat || m.Identity == "" {
		return m, false, fmt.Errorf("format %d is not %d: use the program that wrote it", m.Format, folderFormat)
	}
	return m, true, nil
}

// registry is the platforms that the folder keeps; the default one's
// credential is the one that was set, or else generated the first time.
func (f *folder) registry(s Settings) (platforms.Registry, error) {
	r, err := folderRegistrar{f.dir}.Registry(context.Background())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r = initialRegistry()
		if s.Username != "" {
			break // it is not ours to keep
		}
		raw, err := r.Encode()
		if err == nil {
			err = writeJSON(f.path(fileCredentials), json.RawMessage(raw))
		}
		if err != nil {
			return r, &FolderError{Dir: f.dir, What: "cannot keep the generated password", Remedy: "allow it to be written", Cause: err}
		}
	case errors.As(err, new(*fs.PathError)):
		return r, &FolderError{Dir: f.dir, What: "has a " + fileCredentials + " that cannot be read", Remedy: "allow it to be read", Cause: err}
	case err != nil:
		return r, &FolderError{
			Dir: f.dir, What: "has a damaged " + fileCredentials,
			Remedy: "restore it from a backup; without it, every platform but the first is unknown", Cause: err,
		}
	}
	if s.Username != "" {
		r.Platforms[0].Credential = platforms.Credential{Username: s.Username, Password: s.Password}
		r.Platforms[0].Previous = nil
	}
	return r, nil
}

// writeJSON writes a file that is there whole or not at all, mode 0600.
func writeJSON(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".write-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
