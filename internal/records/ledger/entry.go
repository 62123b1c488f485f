package ledger

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// An Entry is a type of record. Each value holds the version that was read, 0 if it was
// never written.
type Entry interface {
	lifecycle.Record | lifecycle.Pointer | lifecycle.PastOperation | lifecycle.TargetUse | lifecycle.Entry |
		TargetEpoch | Facts | Listing | DataKey | UsedLink | PlatformAPI | Inventory | Identity | Sighting | SweepLease
}

// envelopeOf returns the part of an entry's stored record that the store understands, and where the
// entry holds its version. It takes a pointer to an entry; every type of record has one case here.
func envelopeOf(entry any) (r store.Record, version *int64) {
	switch v := entry.(type) {
	case *lifecycle.Record:
		r.Key, r.Due, r.Expires, version = recordKey(v.Key), v.Due, v.Expires, &v.Version
	case *lifecycle.Pointer:
		r.Key = store.Key{Partition: "B#" + escape.Replace(v.Key.Platform) + "#" + v.Key.Binding, Sort: sortPointer}
		version = &v.Version
	case *lifecycle.PastOperation:
		r.Key = store.Key{Partition: "OP#" + v.Operation.ID, Sort: sortOperation}
		r.Expires, version = v.Expires, &v.Version
	case *TargetEpoch:
		r.Key, version = reaperKey(sortEpoch+escape.Replace(v.Provider)+"#"+v.Identity), &v.Version
	case *lifecycle.TargetUse:
		r.Key, r.Due, version = reaperKey(targetOf(*v)+v.Incarnation), v.Due, &v.Version
	case *lifecycle.Entry:
		r.Key, r.Expires, version = entryKey(*v), v.Ended.Add(lifecycle.HistoryKept), &v.Version
	case *Listing:
		r.Key, version = directoryKey(*v), &v.Version
	case *Facts:
		r.Key = store.Key{Partition: recordKey(v.Key).Partition, Sort: sortFacts}
		r.Expires, version = v.Asked.Add(factsKept), &v.Version
	case *DataKey:
		r.Key, version = pagesKey(sortKey), &v.Version
	case *UsedLink:
		r.Key, r.Expires, version = pagesKey(sortUsed+v.ID), v.Expires, &v.Version
	case *PlatformAPI:
		r.Key, version = pagesKey(sortAPI+v.Platform), &v.Version
	case *Inventory:
		r.Key, r.Due, version = reaperKey(sortInventory), v.Due, &v.Version
	case *Identity:
		r.Key, version = reaperKey(sortIdentity), &v.Version
	case *Sighting:
		r.Key = reaperKey(sortSighting + escape.Replace(v.Provider) + "#" + v.Name)
		r.Expires, version = v.First.Add(sightingKept), &v.Version
	case *SweepLease:
		r.Key, version = reaperKey(sortLease), &v.Version
	}
	r.Version = *version
	r.Due = cmp.Or(r.Due, r.Expires) // what expires is due to be dropped
	return r, version
}

// Put writes the entry at the version that was read.
func Put[T Entry](entry T) Change {
	r, _ := envelopeOf(&entry)
	return Change{store.Put(r), &entry}
}

// put is Put of an entry that may be nil, which needs no change.
func put[T Entry](entry *T) Change {
	if entry == nil {
		return Change{}
	}
	return Put(*entry)
}

// Delete removes the entry at the version that was read; an entry of version 0 needs no change.
func Delete[T Entry](entry T) Change {
	r, _ := envelopeOf(&entry)
	if r.Version == 0 {
		return Change{}
	}
	return Change{store.Delete(r.Key, r.Version), &entry}
}

// Check requires that the record is unchanged since it was read; a record without a key needs no change.
func Check(r lifecycle.Record) Change {
	if r.Key == (lifecycle.Key{}) {
		return Change{}
	}
	return Change{stored: store.Check(recordKey(r.Key), r.Version)}
}

// read returns the stored entry with the key of the given one; if none is stored, it returns the given one at version 0.
func read[T Entry](ctx context.Context, l *Ledger, absent T) (T, error) {
	at, version := envelopeOf(&absent)
	*version = 0
	r, err := l.reread(ctx, at.Key, nil)
	if err != nil || r.Version == 0 {
		return absent, err
	}
	entry, err := entryIn[T](r)
	return *entry, err
}

// add appends the entry in a stored record, if it can be read.
func add[T Entry](to *[]T, r store.Record) error {
	entry, err := entryIn[T](r)
	if err == nil {
		*to = append(*to, *entry)
	}
	return err
}

// entryIn decodes a stored entry; beside an error it returns the part that could be decoded.
func entryIn[T Entry](r store.Record) (*T, error) {
	entry := new(T)
	_, version := envelopeOf(entry)
	err := decode(r, entry)
	*version = r.Version
	return entry, err
}

// The sort keys of the table. Most keys in the reaper's partition begin with one of these.
const (
	sortInstance  = "INSTANCE"
	sortBinding   = "BINDING#"
	sortFormer    = "FORMER#" // then an incarnation, and the binding if there is one
	sortLog       = "LOG#"    // the latest first
	sortFacts     = "FACTS"
	sortPointer   = "POINTER"
	sortOperation = "OPERATION"

	sortListing = "INSTANCE#" // the latest creation first

	sortKey  = "KEY"
	sortUsed = "USED#"
	sortAPI  = "API#"

	sortInventory = "INVENTORY"
	sortIdentity  = "IDENTITY"
	sortLease     = "LEASE"
	sortSighting  = "SEEN#"
	sortReport    = "REPORT#"
	sortEpoch     = "EPOCH#"
	sortTarget    = "TARGET#" // the uses of one target stand together
)

// ReaperPartition holds the reaper's own records.
const ReaperPartition = "REAPER"

func reaperKey(sort string) store.Key { return store.Key{Partition: ReaperPartition, Sort: sort} }

// pagesKey names a record of the pages.
func pagesKey(sort string) store.Key { return store.Key{Partition: "PAGES", Sort: sort} }

// escape escapes the character that ends a platform's name, so that the ids of one platform
// never read as ids of another.
var escape = strings.NewReplacer("%", "%25", "#", "%23")

func recordKey(k lifecycle.Key) store.Key {
	at := store.Key{Partition: "I#" + escape.Replace(k.Platform) + "#" + k.Instance, Sort: sortInstance}
	switch {
	case k.Life != "":
		at.Sort = sortFormer + escape.Replace(k.Life) + "#" + k.Binding
	case k.IsBinding():
		at.Sort = sortBinding + k.Binding
	}
	return at
}

// isRecord reports whether the stored record is that of an instance or a binding.
func isRecord(r store.Record) bool {
	return r.Sort == sortInstance || strings.HasPrefix(r.Sort, sortBinding) || strings.HasPrefix(r.Sort, sortFormer)
}

// isEntry reports whether the stored record is an entry of a history.
func isEntry(r store.Record) bool { return strings.HasPrefix(r.Sort, sortLog) }

// lastMilli has sixteen digits, and is later than any time in milliseconds.
const lastMilli = 1e16 - 1

// latestFirst returns a time for a sort key such that later times come first, since stores list keys in order.
func latestFirst(t time.Time) string {
	return fmt.Sprintf("%016d", int64(lastMilli)-max(t.UnixMilli(), 0))
}

func entryKey(e lifecycle.Entry) store.Key {
	at := recordKey(e.Key.InstanceKey())
	at.Sort = sortLog + latestFirst(e.Ended) + "#" + e.ID
	return at
}

// directoryPartition holds the directory of all platforms: a list of all instances needs one order.
const directoryPartition = "DIRECTORY"

func directoryKey(l Listing) store.Key {
	return store.Key{Partition: directoryPartition, Sort: fmt.Sprintf("%s%s#%s#%s#%s", sortListing, latestFirst(l.Created),
		escape.Replace(l.Key.Platform), escape.Replace(l.Key.Life), l.Key.Instance)}
}

func targetOf(u lifecycle.TargetUse) string {
	return sortTarget + escape.Replace(u.Provider) + "#" + escape.Replace(u.Target) + "#"
}

// reportKey names a report; id distinguishes two reports of the same moment.
func reportKey(r Report, id string) store.Key {
	return reaperKey(fmt.Sprintf("%s%s#%s", sortReport, r.Started.UTC().Format("2006-01-02T15:04:05.000"), id))
}
