package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"

	"github.com/longshore/longshore/internal/base/filelock"
	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/vault"
)

// Check reads a whole data folder and verifies that nothing in it is damaged: its marker, its key,
// the platforms' logins, each page of the records, each record and, if all records are intact, each
// sealed value. It changes nothing. It fails, with an *advice.Error, if there is nothing to check:
// no data folder, or one that is in use.
func Check(ctx context.Context, dir string) (out bolt.Result, err error) {
	mark, markErr := readMarker(dir)
	if errors.Is(markErr, fs.ErrNotExist) {
		return out, notAFolder(dir)
	}
	lock, err := lockToRead(filepath.Join(dir, fileLock))
	if errors.Is(err, fs.ErrNotExist) { // a copy may have no lock file: no broker runs on it
		err = nil
	}
	if errors.Is(err, filelock.ErrLocked) {
		return out, fault(dir)("is in use by another process", "stop the broker, and check again", nil)
	}
	if err != nil {
		return out, fault(dir)("cannot be locked", "allow it to be read", err)
	}
	if lock != nil {
		defer unlock(lock)
	}
	if markErr != nil {
		out.Add(fmt.Errorf("%s: %w", fileMarker, markErr))
	}
	key, err := vault.ReadKeyFile(filepath.Join(dir, fileKey))
	if err == nil && mark.Check != nil && !key.Proves(mark.Check) {
		err = errOtherKey
	}
	if err != nil {
		out.Add(fmt.Errorf("%s: %w", fileKey, err))
		key = nil
	}
	_, loginsErr := Logins{dir}.Registry(ctx)
	if loginsErr != nil && !errors.Is(loginsErr, fs.ErrNotExist) {
		out.Add(fmt.Errorf("%s: %w", fileCredentials, loginsErr))
	}
	records, err := bolt.Check(ctx, filepath.Join(dir, fileRecords))
	if err == nil && records.Wrong == 0 {
		err = checkSealed(ctx, key, filepath.Join(dir, fileRecords), &records.Damage)
	}
	out.Records = records.Records
	for _, p := range records.Problems {
		out.Add(fmt.Errorf("%s: %w", fileRecords, p))
	}
	out.Wrong += records.Wrong - len(records.Problems)
	switch other := errors.Join(markErr, loginsErr, err); {
	case ofAnotherVersion(other):
		return bolt.Result{}, fault(dir)(unreadable(fileRecords, other))
	case errors.Is(err, bolt.ErrMissing):
		out.Add(fmt.Errorf("%s: %w", fileRecords, err))
	case err != nil:
		return out, err
	case records.Wrong == 0 && markErr == nil && records.Identity != mark.Records:
		out.Add(fmt.Errorf("%s: %w", fileRecords, errForeign))
	}
	return out, nil
}

// checkSealed verifies that each record can be decoded and, if there is a key, that each sealed value can be opened.
func checkSealed(ctx context.Context, key *vault.Local, path string, found *bolt.Damage) (err error) {
	records, err := bolt.Open(path, bolt.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	for r, err := range scan(ctx, records) {
		if err != nil {
			return err
		}
		values, err := sealedIn(r)
		if err == nil && key != nil && slices.ContainsFunc(values, func(v vault.Value) bool { return !key.Opens(v) }) {
			err = fmt.Errorf("the secrets in record %q of %q do not open with %s", r.Sort, r.Partition, fileKey)
		}
		if err != nil {
			found.Add(err)
		}
	}
	return nil
}

// scan yields all records.
func scan(ctx context.Context, records *bolt.Store) iter.Seq2[store.Record, error] {
	return paging.All(ctx, func(ctx context.Context, cursor string) ([]store.Record, string, error) {
		page, err := records.Scan(ctx, cursor)
		return page.Records, page.Next, err
	})
}

// sealedIn returns the sealed values of a record.
func sealedIn(r store.Record) (values []vault.Value, err error) {
	all, err := ledger.Decode(r)
	for _, record := range all.Records {
		values = append(values, vault.Of(record)...)
	}
	return values, err
}
