package embedded

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
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/vault"
)

// What the data folder holds.
const (
	fileMarker      = "longshore.json" // written last: the folder is whole
	fileRecords     = "longshore.db"
	fileKey         = "vault.key"
	fileLock        = "lock"
	fileCredentials = "credentials.json"
)

// A folder is the embedded broker's data folder, open and locked by this process.
type folder struct {
	dir     string
	lock    *os.File
	records *bolt.Store
	vault   *vault.Local
	mark    marker
	clock   *clock
	// server is the server that runs in it; nil for none.
	server *backup.Server
	// behind is how far the machine's clock was behind the last commit.
	behind time.Duration
	// toRead says that nothing can be written to it.
	toRead bool
	// damaged names what of the records was damaged, and is not in them any more.
	damaged []string
}

// A marker says that the folder was set up completely, and which records belong to it.
// In a folder with a marker, whatever is missing was lost, and is never made anew.
type marker struct {
	Format int `json:"format"`
	// Records is the identity of the file of records.
	Records string `json:"records"`
	// Broker is the identity of the broker, which everything that it makes carries. It
	// outlives the records.
	Broker string `json:"broker"`
	// Providers are those that were used in the folder, of the providers that can be left
	// out.
	Providers []string `json:"providers,omitempty"`
	// Check proves the vault's key.
	Check []byte `json:"check"`
}

const folderFormat = 1

// dataFolder names a folder in an error.
func dataFolder(dir string) string { return fmt.Sprintf("data folder %q", dir) }

// openFolder opens the data folder, or sets up an empty one. It fails if the records or
// the key are lost, or the key is another one, unless anew is true. Then the records
// may still hold what was sealed with a lost key, until rebuilt is called.
func openFolder(dir string, anew bool) (_ *folder, err error) {
	f := &folder{dir: dir, clock: newClock()}
	fail := func(what, mend string, cause error) error {
		return &advice.Error{Name: dataFolder(dir), What: what, Remedy: mend, Cause: cause}
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
		return nil, fail(unreadable(fileMarker, err))
	}
	if !found {
		if err := f.setUp(); err != nil {
			return nil, err
		}
		return f, nil
	}
	if err := backup.Clear(dir); err != nil {
		return nil, fail("holds what a backup has left, which cannot be removed", "remove what begins with .backup- in it", err)
	}
	if err := f.openMarked(mark, anew, fail); err != nil {
		return nil, err
	}
	return f, nil
}

// openMarked opens a folder that has a marker; fail makes its errors.
func (f *folder) openMarked(mark marker, anew bool, fail func(what, mend string, cause error) error) (err error) {
	f.mark = mark
	f.vault, err = vault.ReadKeyFile(f.path(fileKey))
	keyLost := errors.Is(err, fs.ErrNotExist) || errors.Is(err, vault.ErrKey)
	if err != nil && !(anew && keyLost) {
		return fail("is damaged: the vault's key cannot be read", restoreKey, err)
	}
	err = nil
	if anew {
		err = f.checkRecords() // opening meets only some of what is damaged
	}
	if err == nil {
		err = f.openRecords(mark)
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
	if !keyLost {
		err = f.prove()
	}
	if anew && (keyLost || errors.Is(err, errOtherKey)) {
		err = f.replaceKey()
	}
	switch {
	case errors.Is(err, errOtherKey):
		return fail("cannot be opened: the vault's key is not the right one", restoreKey, err)
	case err != nil: // nobody is to give up a key for a full disk
		return fail("cannot be opened", "put right what is in the way, and try again", err)
	}
	return nil
}

const restore = "restore the folder from a backup; " +
	"without one, `longshore rebuild --yes` keeps what is whole and gives a record to what exists; " +
	"to begin anew and forget every instance, name an empty folder with --data"

const restoreKey = "restore " + fileKey + " from a backup, or the whole folder; if the key is lost, longshore rebuild --yes " +
	"makes a new one and gives up what was sealed with it: the parameters and credentials that users were given"

// unreadable says what to do about a file that cannot be read. A file that another
// version wrote is not damaged: a rebuild or an empty folder would lose what is in it.
func unreadable(file string, err error) (what, mend string, cause error) {
	switch {
	case errors.Is(err, errOld):
		return "is of a version before the first release, which this program does not read",
			"name an empty folder with --data", nil
	case ofAnotherVersion(err):
		return "was written by a newer version of this program", "run that version or a later one; nothing is damaged", err
	default:
		return "is damaged: " + file + " cannot be read", restore, err
	}
}

var (
	errOld   = errors.New("a version before the first release wrote it")
	errNewer = errors.New("a later version wrote it")
)

func ofAnotherVersion(err error) bool {
	return errors.Is(err, errOld) || errors.Is(err, errNewer) || errors.Is(err, bolt.ErrNewer)
}

var errOtherKey = errors.New("it does not open what was sealed in the folder")

var errForeign = errors.New("they belong to another folder")

func (f *folder) openRecords(mark marker) (err error) {
	how := []bolt.Option{bolt.MustExist(), bolt.Clock(f.clock.Now)}
	if f.toRead {
		how = append(how, bolt.ReadOnly())
	}
	if f.records, err = bolt.Open(f.path(fileRecords), how...); err != nil {
		return err
	}
	if f.records.Identity() != mark.Records {
		return errForeign
	}
	f.behind = f.clock.notBefore(f.records.LastCommit())
	return nil
}

// beginRecords sets aside what is left of the records and begins new ones. If it is
// stopped on the way, the next start takes those for another folder's.
func (f *folder) beginRecords() (err error) {
	if f.records != nil {
		_ = f.records.Close()
		f.records = nil
	}
	if err := f.setAside(fileRecords); err != nil {
		return err
	}
	if f.records, err = bolt.Open(f.path(fileRecords), bolt.Clock(f.clock.Now)); err != nil {
		return err
	}
	giveToOwner(f.path(fileRecords))
	f.mark.Records = f.records.Identity()
	return writeJSON(f.path(fileMarker), f.mark)
}

// prove makes sure that the key is the one that was used before; otherwise it is
// errOtherKey.
func (f *folder) prove() error {
	same, err := vault.IsCheck(context.Background(), f.vault, f.mark.Check)
	if err == nil && !same {
		err = errOtherKey
	}
	return err
}

// sealed counts what is sealed in the records, and how much of that opens.
func (f *folder) sealed(ctx context.Context) (sealed, opened int, _ error) {
	for r, err := range scan(ctx, f.records) {
		if err != nil {
			return 0, 0, err
		}
		values, err := sealedIn(r)
		if err != nil {
			return 0, 0, err
		}
		for _, v := range values {
			opens, err := vault.Opens(ctx, f.vault, v)
			if err != nil {
				return 0, 0, err
			}
			if sealed++; opens {
				opened++
			}
		}
	}
	return sealed, opened, nil
}

// keepCheck writes the marker with a check value of the key.
func (f *folder) keepCheck(ctx context.Context) (err error) {
	if f.mark.Check, err = vault.NewCheck(ctx, f.vault); err != nil {
		return err
	}
	return writeJSON(f.path(fileMarker), f.mark)
}

// replaceKey sets the key aside and makes a new one, unless the key opens some of what
// is sealed: then it stays, and the check value is the wrong one. That is still of the
// old key, so that nothing opens the folder before a rebuild has ended (rebuilt);
// another rebuild may begin again.
func (f *folder) replaceKey() error {
	if f.vault != nil {
		if _, opened, err := f.sealed(context.Background()); err != nil || opened > 0 {
			return err
		}
	}
	if err := f.setAside(fileKey); err != nil {
		return err
	}
	if err := vault.CreateKeyFile(f.path(fileKey)); err != nil {
		return err
	}
	giveToOwner(f.path(fileKey))
	var err error
	f.vault, err = vault.ReadKeyFile(f.path(fileKey))
	return err
}

// rebuilt ends the replacement of a key: the key opens everything that is left in the
// records.
func (f *folder) rebuilt(ctx context.Context) error {
	if err := f.prove(); !errors.Is(err, errOtherKey) {
		return err
	}
	return f.keepCheck(ctx)
}

// setAside renames what is left of a file.
func (f *folder) setAside(name string) error {
	err := os.Rename(f.path(name), f.aside(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// aside is the name of what is left of a file.
func (f *folder) aside(name string) string {
	return f.path(name) + ".lost-" + now().Format("20060102T150405.000")
}

// setUp makes what a new folder holds. It may be stopped at any point and repeated; the
// marker comes last.
func (f *folder) setUp() error {
	fail := func(what, mend string, cause error) error {
		return &advice.Error{Name: dataFolder(f.dir), What: what, Remedy: mend, Cause: cause}
	}
	entries, err := os.ReadDir(f.dir)
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
		return fail("is damaged: it has records but no key", restore, nil)
	}
	if err := vault.CreateKeyFile(f.path(fileKey)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail("cannot be set up", "allow it to be written, or name another with --data", err)
	}
	if f.vault, err = vault.ReadKeyFile(f.path(fileKey)); err != nil {
		return fail("is damaged: the vault's key cannot be read", restoreKey, err)
	}
	if f.records, err = bolt.Open(f.path(fileRecords), bolt.Clock(f.clock.Now)); err != nil {
		return fail("cannot be set up", restore, err)
	}
	f.mark = marker{Format: folderFormat, Records: f.records.Identity(), Broker: app.NewID()}
	if err := f.keepCheck(context.Background()); err != nil {
		return fail("cannot be set up", "allow it to be written, or name another with --data", err)
	}
	return nil
}

// whose is the identity that the records of the folder must have.
func (f *folder) whose() ledger.Identity {
	return ledger.Identity{Deployment: embeddedDeployment, Broker: f.mark.Broker}
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
	if m.Format > folderFormat {
		return m, false, fmt.Errorf("format %d is not %d: %w", m.Format, folderFormat, errNewer)
	}
	if m.Format != folderFormat || m.Records == "" || m.Broker == "" || m.Check == nil {
		return m, false, errOld
	}
	return m, true, nil
}

// markerOf is the marker of a folder in which a broker was started.
func markerOf(dir string) (marker, error) {
	m, found, err := readMarker(filepath.Join(dir, fileMarker))
	if err != nil {
		what, mend, cause := unreadable(fileMarker, err)
		return m, &advice.Error{Name: dataFolder(dir), What: what, Remedy: mend, Cause: cause}
	}
	if !found {
		return m, notAFolder(dir)
	}
	return m, nil
}

func notAFolder(dir string) error {
	const start = "name one with --data in which the broker was started once"
	return &advice.Error{Name: dataFolder(dir), What: "is not a data folder", Remedy: start}
}
