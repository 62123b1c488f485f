// Package folder is the data folder of a broker on one machine. It owns the files: the records, the
// vault's key, the logins, the lock and the clock. It says what to do when one of them is lost or
// damaged. The meaning of the records is left to others.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/filelock"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/vault"
)

// The files of a data folder.
const (
	fileMarker      = "longshore.json" // written last: with it, the folder is complete
	fileRecords     = "longshore.db"
	fileKey         = "vault.key"
	fileLock        = "lock"
	fileCredentials = "credentials.json"
	fileControl     = "control.sock" // the socket of a running broker
)

// deployment is how records of this folder identify the place where their broker runs.
const deployment = "embedded"

// A Folder is a data folder, open and locked by this process.
type Folder struct {
	Dir     string
	Records *bolt.Store
	Vault   *vault.Local
	// Behind is how far the machine's clock was behind the last commit.
	Behind time.Duration
	// ReadOnly says that nothing can be written to the folder.
	ReadOnly bool
	// Damaged names the damaged records that a rebuild has left out.
	Damaged []string

	lock *os.File
	mark marker
	*clock
	newID func() string
}

// Options are the inputs of a folder.
type Options struct {
	NewID func() string
	// Wall is the machine's clock, which may step; nil for the real one.
	Wall func() time.Time
}

func (o Options) folder(dir string) *Folder {
	return &Folder{Dir: dir, clock: newClock(o.Wall), newID: o.NewID}
}

// Open opens the data folder, or sets up an empty one. It fails if the records or the key are lost,
// or if the key is a different one.
func Open(dir string, o Options) (*Folder, error) { return open(dir, false, o) }

// Rebuild is Open for a folder whose records or key may be lost or damaged: it sets their remains aside, and
// begins new ones. Until Rebuilt is called, the records may still hold values that were sealed with a lost key.
func Rebuild(dir string, o Options) (*Folder, error) { return open(dir, true, o) }

func open(dir string, anew bool, o Options) (_ *Folder, err error) {
	f := o.folder(dir)
	fail := fault(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail("cannot be made", "name another with --data, or allow this one to be written", err)
	}
	f.lock, err = lockFile(filepath.Join(dir, fileLock))
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fail("is in use by another process", "stop that one, or name another folder with --data", nil)
	}
	if err != nil {
		return nil, fail("cannot be locked", "allow it to be written, or name another with --data", err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	giveToOwner(f.lock.Name())

	f.mark, err = readMarker(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = f.setUp()
	case err != nil:
		err = fail(unreadable(fileMarker, err))
	default:
		if err = backup.Clear(dir); err == nil {
			err = f.openMarked(anew)
		} else {
			err = fail("holds files that a backup has left and that cannot be removed",
				"remove what begins with .backup- in it", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openMarked opens a folder that has a marker.
func (f *Folder) openMarked(anew bool) (err error) {
	fail := fault(f.Dir)
	f.Vault, err = vault.ReadKeyFile(f.Path(fileKey))
	keyLost := errors.Is(err, fs.ErrNotExist) || errors.Is(err, vault.ErrKey)
	if err != nil && !(anew && keyLost) {
		return fail("is damaged: the vault's key cannot be read", restoreKey, err)
	}
	err = nil
	if anew {
		err = f.checkRecords() // opening the records would find only some of the damage
	}
	if err == nil {
		err = f.openRecords()
	}
	if anew && errors.Is(err, bolt.ErrDamaged) {
		err = f.salvageRecords()
	}
	if anew && (errors.Is(err, bolt.ErrMissing) || errors.Is(err, bolt.ErrDamaged) || errors.Is(err, errForeign)) {
		err = f.beginRecords()
	}
	if err != nil {
		return fail(unreadable(fileRecords, err))
	}
	if !keyLost && f.Vault.Proves(f.mark.Check) {
		return nil
	}
	if !anew {
		return fail("cannot be opened: the vault's key is not the right one", restoreKey, errOtherKey)
	}
	if err := f.replaceKey(); err != nil { // no advice to give up a key because of, say, a full disk
		return fail("cannot be opened", "remove the cause, and try again", err)
	}
	return nil
}

func (f *Folder) openRecords() (err error) {
	how := bolt.Options{MustExist: true, ReadOnly: f.ReadOnly, Clock: f.Now}
	if f.Records, err = bolt.Open(f.Path(fileRecords), how); err != nil {
		return err
	}
	if f.Records.Identity() != f.mark.Records {
		return errForeign
	}
	f.Behind = f.notBefore(f.Records.LastCommit())
	return nil
}

// setUp makes the files of a new folder. It may be stopped at any point and repeated: the marker is written last.
func (f *Folder) setUp() error {
	fail := fault(f.Dir)
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return fail("cannot be listed", "allow it to be read, or name another with --data", err)
	}
	hasRecords, hasKey := false, false
	for _, e := range entries {
		hasRecords = hasRecords || e.Name() == fileRecords
		hasKey = hasKey || e.Name() == fileKey
		if !slices.Contains([]string{fileLock, fileKey, fileRecords, fileControl}, e.Name()) &&
			!strings.HasPrefix(e.Name(), ".") {
			return fail(fmt.Sprintf("has no %s but holds %q", fileMarker, e.Name()),
				"it is not a data folder, or was damaged; name an empty folder with --data, or restore this one", nil)
		}
	}
	if hasRecords && !hasKey {
		return fail("is damaged: it has records but no key", Restore, nil)
	}
	if err := vault.CreateKeyFile(f.Path(fileKey)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail("cannot be set up", "allow it to be written, or name another with --data", err)
	}
	giveToOwner(f.Path(fileKey))
	if f.Vault, err = vault.ReadKeyFile(f.Path(fileKey)); err != nil {
		return fail("is damaged: the vault's key cannot be read", restoreKey, err)
	}
	if f.Records, err = bolt.Open(f.Path(fileRecords), bolt.Options{Clock: f.Now}); err != nil {
		return fail("cannot be set up", Restore, err)
	}
	giveToOwner(f.Path(fileRecords))
	f.mark = marker{Format: folderFormat, Records: f.Records.Identity(), Broker: f.newID()}
	if err := f.keepCheck(); err != nil {
		return fail("cannot be set up", "allow it to be written, or name another with --data", err)
	}
	return nil
}

// Whose returns the identity that the records of the folder must have.
func (f *Folder) Whose() ledger.Identity {
	return ledger.Identity{Deployment: deployment, Broker: f.mark.Broker}
}

// Path returns the path of a file in the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// Close closes the records, and releases the lock.
func (f *Folder) Close() {
	if f.Records != nil {
		_ = f.Records.Close()
	}
	if f.lock != nil {
		unlock(f.lock)
	}
}

// Control returns the path of the socket on which a running broker answers operators.
func Control(dir string) string { return filepath.Join(dir, fileControl) }

// Backup writes the whole folder, while hold keeps steps from running. Server is the server that
// the broker runs in the folder; nil for none.
func (f *Folder) Backup(ctx context.Context, hold func(func() error) error, server *backup.Server, to io.Writer) error {
	return backup.Folder{
		Dir: f.Dir, Records: fileRecords, Snapshot: f.Records.Snapshot, Quiet: hold, Server: server,
		Without: []string{fileLock, fileControl, fileCredentials + ".lock"},
	}.Write(ctx, to)
}
