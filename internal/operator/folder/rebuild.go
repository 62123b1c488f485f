package folder

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/vault"
)

// checkRecords reads all of the records, and notes the damaged ones.
func (f *Folder) checkRecords() error {
	checked, err := bolt.Check(context.Background(), f.Path(fileRecords))
	for _, problem := range checked.Problems {
		f.Damaged = append(f.Damaged, problem.Error())
	}
	if err == nil && checked.Wrong > 0 {
		err = checked.Problems[0]
	}
	return err
}

// fileSalvaged is the temporary file into which records are salvaged.
const fileSalvaged = "." + fileRecords + ".salvaged"

// salvageRecords keeps a copy of the damaged file aside, and atomically replaces it with the
// records that are intact. These no longer say whose they are: until a rebuild has ended, the
// reaper treats nothing that they do not know as an orphan.
func (f *Folder) salvageRecords() error {
	if err := os.Remove(f.Path(fileSalvaged)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	saved, err := bolt.Salvage(f.Path(fileRecords), f.Path(fileSalvaged), f.mark.Records, func(r store.Record) bool {
		return !ledger.IsIdentity(r)
	})
	if err == nil && saved.Identity != "" && saved.Identity != f.mark.Records {
		err = errForeign
	}
	if err != nil {
		_ = os.Remove(f.Path(fileSalvaged))
		return err
	}
	giveToOwner(f.Path(fileSalvaged))
	if err := os.Link(f.Path(fileRecords), f.aside(fileRecords)); err != nil {
		return err
	}
	if err := os.Rename(f.Path(fileSalvaged), f.Path(fileRecords)); err != nil {
		return err
	}
	if err := bolt.SyncFolder(f.Dir); err != nil {
		return err
	}
	return f.openRecords()
}

// beginRecords sets the remains of the records aside and begins new ones. If the process dies in
// between, the next start takes the new ones for another folder's.
func (f *Folder) beginRecords() (err error) {
	if f.Records != nil {
		_ = f.Records.Close()
		f.Records = nil
	}
	if err := f.setAside(fileRecords); err != nil {
		return err
	}
	if f.Records, err = bolt.Open(f.Path(fileRecords), bolt.Options{Clock: f.Now}); err != nil {
		return err
	}
	giveToOwner(f.Path(fileRecords))
	f.mark.Records = f.Records.Identity()
	return writeJSON(f.Path(fileMarker), f.mark)
}

// sealed counts the sealed values of the records, and how many of them the key opens.
func (f *Folder) sealed(ctx context.Context) (sealed, opened int, _ error) {
	for r, err := range scan(ctx, f.Records) {
		if err != nil {
			return 0, 0, err
		}
		values, err := sealedIn(r)
		if err != nil {
			return 0, 0, err
		}
		for _, v := range values {
			if sealed++; f.Vault.Opens(v) {
				opened++
			}
		}
	}
	return sealed, opened, nil
}

// replaceKey sets the key aside and makes a new one. If the key opens any sealed value, it stays
// instead: then the check value is the wrong one. The check value remains that of the old key, so
// that until a rebuild has ended (Rebuilt), only another rebuild opens the folder.
func (f *Folder) replaceKey() error {
	if f.Vault != nil {
		if _, opened, err := f.sealed(context.Background()); err != nil || opened > 0 {
			return err
		}
	}
	if err := f.setAside(fileKey); err != nil {
		return err
	}
	if err := vault.CreateKeyFile(f.Path(fileKey)); err != nil {
		return err
	}
	giveToOwner(f.Path(fileKey))
	var err error
	f.Vault, err = vault.ReadKeyFile(f.Path(fileKey))
	return err
}

// Rebuilt ends the replacement of a key: from now on, the key opens everything that the records still hold.
func (f *Folder) Rebuilt(context.Context) error {
	if f.Vault.Proves(f.mark.Check) {
		return nil
	}
	return f.keepCheck()
}

// setAside renames the remains of a file.
func (f *Folder) setAside(name string) error {
	err := os.Rename(f.Path(name), f.aside(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// aside returns the name for the remains of a file.
func (f *Folder) aside(name string) string {
	return f.Path(name) + ".lost-" + f.wall().Format("20060102T150405.000")
}
