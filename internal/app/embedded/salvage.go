package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
)

// checkRecords reads all of the records.
func (f *folder) checkRecords() error {
	checked, err := bolt.Check(context.Background(), f.path(fileRecords))
	for _, problem := range checked.Problems {
		f.damaged = append(f.damaged, problem.Error())
	}
	if err == nil && checked.Wrong > 0 {
		err = checked.Problems[0]
	}
	return err
}

// fileSalvaged is what the records are salvaged into.
const fileSalvaged = "." + fileRecords + ".salvaged"

// salvageRecords keeps a copy of damaged records aside and puts what is whole of them in
// their place, at once. They no longer say whose they are: until a rebuild has ended, the
// reaper takes nothing that they do not know for an orphan.
func (f *folder) salvageRecords() error {
	if f.records != nil {
		_ = f.records.Close()
		f.records = nil
	}
	if err := os.Remove(f.path(fileSalvaged)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	saved, err := bolt.Salvage(f.path(fileRecords), f.path(fileSalvaged), f.mark.Records, func(r store.Record) bool {
		return !ledger.IsIdentity(r)
	})
	if err == nil && saved.Identity != "" && saved.Identity != f.mark.Records {
		err = errForeign
	}
	if err != nil {
		_ = os.Remove(f.path(fileSalvaged))
		return err
	}
	giveToOwner(f.path(fileSalvaged))
	if err := os.Link(f.path(fileRecords), f.aside(fileRecords)); err != nil {
		return err
	}
	if err := os.Rename(f.path(fileSalvaged), f.path(fileRecords)); err != nil {
		return err
	}
	if err := syncFolder(f.dir); err != nil {
		return err
	}
	return f.openRecords(f.mark)
}
