package ledger

import (
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
	lifecycle.Record | lifecycle.Pointer | lifecycle.PastOperation | lifecycle.TargetEpoch | lifecycle.TargetUse |
		lifecycle.Entry | Facts | Listing | DataKey | UsedLink | PlatformAPI | Inventory | Identity | Sighting | SweepLease
}

// An envelope is the part of an entry that the store knows.
type envelope struct {
	key     store.Key
	version *int64
	due     time.Time // when the reaper is to look at the entry; zero for never
	expires time.Time // from when the store may drop the entry; zero for never
}

// envelopeOf takes a pointer to an entry. Every type of record has one case here.
func envelopeOf(entry any) (e envelope) {
	switch v := entry.(type) {
	case *lifecycle.Record:
		e = envelope{recordKey(v.Key), &v.Version, v.Due, v.Expires}
	case *lifecycle.Pointer:
		e = envelope{key: pointerKey(v.Key.Platform, v.Key.Binding), version: &v.Version}
	case *lifecycle.PastOperation:
		e = envelope{operationKey(v.Operation.ID), &v.Version, v.Expires, v.Expires}
	case *lifecycle.TargetEpoch:
		e = envelope{key: epochKey(v.Provider, v.Identity), version: &v.Version}
	case *lifecycle.TargetUse:
		e = envelope{key: targetKey(*v), version: &v.Version, due: v.Due}
	case *lifecycle.Entry:
		expires := v.Ended.Add(lifecycle.HistoryKept)
		e = envelope{entryKey(*v), &v.Version, expires, expires}
	case *Listing:
		e = envelope{key: directoryKey(*v), version: &v.Version}
	case *Facts:
		expires := v.Asked.Add(factsKept)
		e = envelope{factsKey(v.Key), &v.Version, expires, expires}
	case *DataKey:
		e = envelope{key: pagesKey(sortKey), version: &v.Version}
	case *UsedLink:
		e = envelope{pagesKey(sortUsed + v.ID), &v.Version, v.Expires, v.Expires}
	case *PlatformAPI:
		e = envelope{key: pagesKey(sortAPI + v.Platform), version: &v.Version}
	case *Inventory:
		e = envelope{key: reaperKey(sortInventory), version: &v.Version, due: v.Due}
	case *Identity:
		e = envelope{key: reaperKey(sortIdentity), version: &v.Version}
	case *Sighting:
		expires := v.First.Add(sightingKept)
		e = envelope{sightingKey(v.Provider, v.Name), &v.Version, expires, expires}
	case *SweepLease:
		e = envelope{key: reaperKey(sortLease), version: &v.Version}
	}
	return e
}

// Put writes the entry at the version that was read.
func Put[T Entry](entry T) Change {
	e := envelopeOf(&entry)
	return Change{key: e.key, was: *e.version, body: &entry, due: e.due, expire: e.expires}
}

// Delete removes the entry at the version that was read; an entry of version 0 needs no change.
func Delete[T Entry](entry T) Change {
	e := envelopeOf(&entry)
	if *e.version == 0 {
		return Change{}
	}
	return Change{action: store.ActionDelete, key: e.key, was: *e.version, body: &entry}
}

// Check requires that the record is unchanged since it was read; a record without a key needs no change.
func Check(r lifecycle.Record) Change {
	if r.Key == (lifecycle.Key{}) {
		return Change{}
	}
	return Change{action: store.ActionCheck, key: recordKey(r.Key), was: r.Version}
}

// read returns the entry at a key, or absent if there is none.
func read[T Entry](ctx context.Context, l *Ledger, key store.Key, absent T) (T, error) {
	r, err := l.reread(ctx, key, nil)
	if err != nil || r.Version == 0 {
		return absent, err
	}
	entry, err := entryIn[T](r)
	return *entry, err
}

// entryIn decodes a stored entry; beside an error it returns the part that could be decoded.
func entryIn[T Entry](r store.Record) (*T, error) {
	entry := new(T)
	err := decode(r, entry)
	*envelopeOf(entry).version = r.Version
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
func isRecord(r store.Record) bool { return isInstance(r) || isBinding(r) }

func isInstance(r store.Record) bool {
	life, former := strings.CutPrefix(r.Sort, sortFormer)
	return r.Sort == sortInstance || former && strings.Index(life, "#") == len(life)-1
}

func isBinding(r store.Record) bool {
	return strings.HasPrefix(r.Sort, sortBinding) || strings.HasPrefix(r.Sort, sortFormer) && !isInstance(r)
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

func factsKey(instance lifecycle.Key) store.Key {
	return store.Key{Partition: recordKey(instance).Partition, Sort: sortFacts}
}

func pointerKey(platform, binding string) store.Key {
	return store.Key{Partition: "B#" + escape.Replace(platform) + "#" + binding, Sort: sortPointer}
}

func operationKey(id string) store.Key {
	return store.Key{Partition: "OP#" + id, Sort: sortOperation}
}

func sightingKey(provider, name string) store.Key {
	return reaperKey(sortSighting + escape.Replace(provider) + "#" + name)
}

func epochKey(provider, identity string) store.Key {
	return reaperKey(sortEpoch + escape.Replace(provider) + "#" + identity)
}

func targetOf(u lifecycle.TargetUse) string {
	return sortTarget + escape.Replace(u.Provider) + "#" + escape.Replace(u.Target) + "#"
}

func targetKey(u lifecycle.TargetUse) store.Key { return reaperKey(targetOf(u) + u.Incarnation) }

// reportKey names a report; id distinguishes two reports of the same moment.
func reportKey(r Report, id string) store.Key {
	return reaperKey(fmt.Sprintf("%s%s#%s", sortReport, r.Started.UTC().Format("2006-01-02T15:04:05.000"), id))
}
