package folder

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/longshore/longshore/internal/records/store/bolt"
)

// writeJSON writes a file of a data folder with mode 0600. After a crash, the file is either complete or absent.
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
	giveToOwner(f.Name())
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return bolt.SyncFolder(filepath.Dir(path))
}
