package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/records/store/bolt"
)

// A marker says that the folder was set up completely, and which records belong to it. In a folder
// with a marker, a missing file was lost, and is never made anew.
type marker struct {
	Format int `json:"format"`
	// Records is the identity of the file of records.
	Records string `json:"records"`
	// Broker is the identity of the broker, which is attached to everything that the broker makes.
	// It outlives the records.
	Broker string `json:"broker"`
	// Providers are those of the optional providers that were used in the folder.
	Providers []string `json:"providers,omitempty"`
	// Check is a value that proves the vault's key.
	Check []byte `json:"check"`
}

const folderFormat = 1

// readMarker reads the marker of a folder; the error is fs.ErrNotExist if there is none.
func readMarker(dir string) (m marker, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, fileMarker))
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	switch {
	case err != nil:
		return m, err
	case m.Format > folderFormat:
		return m, fmt.Errorf("format %d is not %d: %w", m.Format, folderFormat, errNewer)
	case m.Format != folderFormat || m.Records == "" || m.Broker == "" || m.Check == nil:
		return m, errOld
	}
	return m, nil
}

// markerOf returns the marker of a folder in which a broker was started.
func markerOf(dir string) (marker, error) {
	m, err := readMarker(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, notAFolder(dir)
	case err != nil:
		return m, fault(dir)(unreadable(fileMarker, err))
	}
	return m, nil
}

func notAFolder(dir string) error {
	return fault(dir)("is not a data folder", "name one with --data in which the broker was started once", nil)
}

// Begun fails unless a broker was started in the folder once.
func Begun(dir string) error {
	_, err := markerOf(dir)
	return err
}

// Broker returns the identity of the folder's broker, also while a broker runs on the folder. It
// sets the folder up if that was not done yet.
func Broker(dir string, o Options) (string, error) {
	mark, err := readMarker(dir)
	if err != nil {
		f, err := Open(dir, o)
		if err != nil {
			return "", err
		}
		defer f.Close()
		mark = f.mark
	}
	return mark.Broker, nil
}

// Used reports whether an optional provider was used in the folder.
func (f *Folder) Used(provider string) bool { return slices.Contains(f.mark.Providers, provider) }

// Use records that an optional provider was used in the folder.
func (f *Folder) Use(provider string) error {
	if f.Used(provider) {
		return nil
	}
	f.mark.Providers = append(f.mark.Providers, provider)
	return writeJSON(f.Path(fileMarker), f.mark)
}

// keepCheck writes the marker with a check value of the key.
func (f *Folder) keepCheck() error {
	f.mark.Check = f.Vault.Check()
	return writeJSON(f.Path(fileMarker), f.mark)
}

// fault returns a function that makes the errors of a folder.
func fault(dir string) func(what, mend string, cause error) error {
	return func(what, mend string, cause error) error {
		return &advice.Error{Name: fmt.Sprintf("data folder %q", dir), What: what, Remedy: mend, Cause: cause}
	}
}

// Restore is the advice for a damaged folder.
const Restore = "restore the folder from a backup; " +
	"without one, `longshore rebuild --yes` keeps what is whole and gives a record to what exists; " +
	"to begin anew and forget every instance, name an empty folder with --data"

const restoreKey = "restore " + fileKey + " from a backup, or the whole folder; if the key is lost, longshore rebuild --yes " +
	"makes a new one and gives up what the lost one had sealed: the parameters and credentials that users were given"

// unreadable describes a file that cannot be read, and what to do. A file written by another
// version is not damaged: a rebuild or an empty folder would lose its content.
func unreadable(file string, err error) (what, mend string, cause error) {
	switch {
	case errors.Is(err, errOld):
		return "was written by a version before the first release, which this program does not read",
			"name an empty folder with --data", nil
	case ofAnotherVersion(err):
		return "was written by a newer version of this program", "run that version or a later one; nothing is damaged", err
	default:
		return "is damaged: " + file + " cannot be read", Restore, err
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
