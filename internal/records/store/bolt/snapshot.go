package bolt

import (
	"errors"
	"os"
)

// Snapshot writes all records as they are at one moment into a new file, which is a store file
// with the same identity. Commits go on meanwhile; those after that moment are not in the
// snapshot. It fails once damage was found, since a backup of damage would take the place of a
// good one. After an error, the part of the file that it leaves is of no use.
func (s *Store) Snapshot(path string) (err error) {
	defer while(&err, "writing a snapshot of store %q", s.path)
	if s.spoilt.Load() {
		return errSpoilt
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = s.within(s.db.View, func(c *content) error {
			_, err := c.tx.WriteTo(f)
			return err
		})
		err = errors.Join(err, f.Sync(), f.Close())
	}
	return err
}
