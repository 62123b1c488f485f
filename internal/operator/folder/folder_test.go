package folder

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
	"github.com/longshore/longshore/internal/test/testkit"
)

// inputs are those of the folders of tests.
var inputs = Options{NewID: newID}

func newID() string { return rand.Text()[:lifecycle.OperationIDLength] }

// filled is a data folder with instances and bindings, of which each holds something sealed.
func filled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f := expect.Get(Open(dir, inputs))(t)
	defer f.Close()
	for _, id := range []string{"one", "two"} {
		record(t, f, f.Vault, id)
	}
	return dir
}

// record writes an instance and a binding of it, sealed with the vault.
func record(t *testing.T, f *Folder, v vault.Vault, id string) {
	t.Helper()
	at := time.Now().UTC()
	seal := func(key lifecycle.Key, m vault.Member) lifecycle.Sealed {
		sealed := expect.Get(v.Seal(t.Context(), vault.Label{Key: key, Member: m}, []byte(`{"pin":"4831"}`)))(t)
		return sealed
	}
	start := lifecycle.Start{ID: newID(), Now: at, Received: at, Timeout: time.Hour}
	key := lifecycle.Key{Platform: "default", Instance: id}
	i, err := lifecycle.Record{Key: key}.BeginCreate(start, lifecycle.Record{Provider: "demo",
		Attributes: lifecycle.Attributes{PlanID: "plan", Parameters: seal(key, vault.Parameters)}})
	expect.OK(t, err)
	i = expect.Get(i.Succeed(at, nil))(t)
	key.Binding = "b"
	b, err := lifecycle.Record{Key: key}.BeginCreate(start,
		lifecycle.Record{BindingOnly: lifecycle.BindingOnly{Secret: seal(key, vault.Secret)}})
	expect.OK(t, err)
	b = expect.Get(b.Succeed(at, seal(key, vault.Grant)))(t)
	expect.OK(t, ledger.New(f.Records, newID).Commit(t.Context(), ledger.Put(i), ledger.Put(b)))
}

// flip changes one bit of the folder's key.
func flip(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, fileKey)
	key := expect.Get(os.ReadFile(path))(t)
	key[7] ^= 4
	expect.OK(t, os.WriteFile(path, key, 0o600))
}

// opens requires that the folder opens and all that is sealed in it, and gives how much that is.
func opens(t *testing.T, dir string) int {
	t.Helper()
	f := expect.Get(Open(dir, inputs))(t)
	defer f.Close()
	sealed, opened, err := f.sealed(t.Context())
	if err != nil || sealed != opened {
		t.Errorf("%d of %d sealed values open: %v", opened, sealed, err)
	}
	expect.Same(t, "its check value", true, f.Vault.Proves(f.mark.Check))
	return sealed
}

// refused requires that the folder does not open, that this changes nothing, and that it is said what to do.
func refused(t *testing.T, dir string) {
	t.Helper()
	before := contents(t, dir)
	f, err := Open(dir, inputs)
	var why *advice.Error
	if !errors.As(err, &why) {
		if err == nil {
			f.Close()
		}
		t.Fatalf("opened with another key: %v", err)
	}
	expect.Says(t, "the error", err.Error(), "restore "+fileKey+" from a backup", "longshore rebuild --yes")
	expect.Same(t, "the folder", before, contents(t, dir))
}

// contents are a folder's files.
func contents(t *testing.T, dir string) string {
	t.Helper()
	all := map[string]string{}
	for _, e := range expect.Get(os.ReadDir(dir))(t) {
		if !e.IsDir() {
			all[e.Name()] = string(expect.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t))
		}
	}
	return fmt.Sprintf("%q", all)
}

// rebuilt rebuilds the folder.
func rebuilt(t *testing.T, dir string) operator.Rebuilt {
	t.Helper()
	f := expect.Get(Rebuild(dir, inputs))(t)
	defer f.Close()
	found := expect.Get(operator.Rebuild.Ask(t.Context(), consoleOf(f).Call, operator.None{}))(t)
	return found
}

// consoleOf is the console of a folder on which no broker runs, and whose provider keeps nothing.
func consoleOf(f *Folder) *operator.Console {
	offered := testkit.Demo()
	return operator.New(operator.Options{
		Acts:    acts.Acts{Records: ledger.New(f.Records, newID), Now: f.Now, NewID: newID, OperationTimeout: time.Hour},
		Catalog: offered.Plan, ServiceOf: offered.ServiceOf, Vault: f.Vault, Whose: f.Whose(),
		Damaged: f.Damaged, Rebuilt: f.Rebuilt, Lost: func(string) {}})
}

// A folder that a version before the first release wrote is refused with one sentence,
// also by a rebuild, which leaves it as it is.
func TestAnOldFolderIsRefused(t *testing.T) {
	dir := filled(t)
	old := `{"format": 1, "identity": "of its records", "broker": "b", "check": "AAAA"}`
	expect.OK(t, os.WriteFile(filepath.Join(dir, fileMarker), []byte(old), 0o600))
	before := contents(t, dir)
	says := fmt.Sprintf("data folder %q was written by a version before the first release, which this program does not read: "+
		"name an empty folder with --data", dir)
	for name, err := range map[string]error{"Start": expect.Err(Open(dir, inputs)), "Rebuild": expect.Err(Rebuild(dir, inputs)),
		"Look": expect.Err(Look(dir, inputs)), "Fsck": expect.Err(Check(t.Context(), dir)),
		"Platforms": expect.Err(LoginsOf(dir)), "Console": Begun(dir)} {
		expect.Same(t, name, says, fmt.Sprint(err))
	}
	expect.Same(t, "the folder", before, contents(t, dir))
}

// otherCheck puts another key's check value into the folder's marker.
func otherCheck(t *testing.T, dir string) {
	t.Helper()
	other := expect.Get(markerOf(filled(t)))(t)
	mark := expect.Get(markerOf(dir))(t)
	mark.Check = other.Check
	expect.OK(t, writeJSON(filepath.Join(dir, fileMarker), mark))
}

// Where the check value alone is another's, a rebuild keeps the key and all that it opens, and gives up the rest alone.
func TestAnotherCheckValue(t *testing.T) {
	dir := filled(t)
	f := expect.Get(Open(dir, inputs))(t)
	other := expect.Get(vault.NewLocal(make([]byte, 32)))(t)
	record(t, f, other, "three")
	f.Close()
	otherCheck(t, dir)
	refused(t, dir)
	found := rebuilt(t, dir)
	if len(found.Parameters) != 1 || len(found.Rotate) != 1 || found.Rotate[0] != "three/b" {
		t.Errorf("%+v", found)
	}
	expect.Same(t, "sealed values that open", 6, opens(t, dir))
}

// A folder does not open with a key that is not its own, or that cannot be read now; with its own again it does, and nothing is
// lost: no rebuild replaces a key that cannot be read.
func TestAnotherKeyIsRefused(t *testing.T) {
	dir := filled(t)
	flip(t, dir)
	refused(t, dir)
	flip(t, dir)
	expect.Same(t, "sealed values that open", 6, opens(t, dir))
	key := filepath.Join(dir, fileKey)
	expect.OK(t, errors.Join(os.Rename(key, key+".kept"), os.Mkdir(key, 0o700)))
	refused(t, dir)
	if _, err := Rebuild(dir, inputs); err == nil {
		t.Error("a rebuild goes on without the key")
	}
	expect.OK(t, errors.Join(os.Remove(key), os.Rename(key+".kept", key)))
	expect.Same(t, "sealed values that open", 6, opens(t, dir))
}

// Where the sealed values cannot be counted, the key is not blamed: no message tells the operator to give them up.
func TestAnotherFaultIsNotTheKeys(t *testing.T) {
	dir := filled(t)
	f := expect.Get(Open(dir, inputs))(t)
	key := store.Key{Partition: "damaged", Sort: "INSTANCE"}
	damaged := store.Record{Key: key, Writer: "w", Schema: 1, Body: []byte("no JSON")}
	expect.OK(t, f.Records.Commit(t.Context(), store.Put(damaged)))
	f.Close()
	otherCheck(t, dir)
	_, err := Rebuild(dir, inputs)
	if err == nil {
		t.Fatal("it opens")
	}
	expect.Never(t, "what blames the key", err.Error(), "not the right one", "restore "+fileKey)
}

// A rebuild that replaces a lost key may die after any of its effects: until
// another one has ended it, no other command opens the folder.
func TestReplacingAKeyDiesAnywhere(t *testing.T) {
	part := func(do func(f *Folder) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			f := inputs.folder(dir)
			expect.OK(t, do(f))
		}
	}
	deaths := map[string]func(t *testing.T, dir string){
		"Before":      func(*testing.T, string) {},
		"KeySetAside": part(func(f *Folder) error { return f.setAside(fileKey) }),
		"KeyMade": part(func(f *Folder) error {
			return errors.Join(f.setAside(fileKey), vault.CreateKeyFile(f.Path(fileKey)))
		}),
		"Opened": func(t *testing.T, dir string) {
			f := expect.Get(Rebuild(dir, inputs))(t)
			f.Close()
		},
	}
	for n, name := range []string{"NoCommit", "OneCommit", "TwoCommits", "ThreeCommits", "AllCommits", "NoCheckValue"} {
		deaths[name] = func(t *testing.T, dir string) {
			f := expect.Get(Rebuild(dir, inputs))(t)
			defer f.Close()
			dies := consoleOf(f)
			dies.Records = ledger.New(storetest.Dying(f.Records, n), newID)
			dies.Rebuilt = nil // it dies before that, too
			if _, err := dies.Rebuild(t.Context(), operator.None{}); (err == nil) != (name == "NoCheckValue") {
				t.Fatalf("after %d commits: %v", n, err)
			}
		}
	}
	for name, die := range deaths {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			flip(t, dir)
			die(t, dir)
			refused(t, dir)
			rebuilt(t, dir)
			expect.Same(t, "sealed values that open", 0, opens(t, dir))
			if aside := expect.Get(filepath.Glob(filepath.Join(dir, fileKey+".lost-*")))(t); len(aside) == 0 {
				t.Error("the former key was not set aside")
			}
		})
	}
}

// A broker has one identity for good: it outlives its records and its key.
func TestTheBrokersIdentity(t *testing.T) {
	identity := func(dir string, anew bool) string {
		t.Helper()
		f := expect.Get(open(dir, anew, inputs))(t)
		defer f.Close()
		if kept, err := readMarker(dir); err != nil || kept.Broker != f.mark.Broker || kept.Broker == "" {
			t.Errorf("the broker is %q, and its folder keeps %q: %v", f.mark.Broker, kept.Broker, err)
		}
		return f.Whose().Broker
	}
	dir := filled(t)
	was := identity(dir, false)
	if other := identity(filled(t), false); other == was {
		t.Error("two brokers have one identity")
	}
	expect.Same(t, "the identity at the next start", was, identity(dir, false))
	for _, lost := range []string{fileRecords, fileKey} {
		expect.OK(t, os.Remove(filepath.Join(dir, lost)))
		expect.Same(t, fmt.Sprintf("the identity without %s", lost), was, identity(dir, true))
	}
}

// replace changes a text wherever it stands in a file.
func replace(t *testing.T, path, old, next string) {
	t.Helper()
	raw := string(expect.Get(os.ReadFile(path))(t))
	expect.Says(t, path, raw, old)
	expect.OK(t, os.WriteFile(path, []byte(strings.ReplaceAll(raw, old, next)), 0o600))
}

// A rebuild finds damage that opening does not meet, before it builds on it.
func TestARebuildFindsDamagedRecords(t *testing.T) {
	dir := filled(t)
	path := filepath.Join(dir, fileRecords)
	replace(t, path, `"state":"ready"`, `"state":"reedy"`)
	for _, open := range []func(string, Options) (*Folder, error){Open, Rebuild} {
		expect.Get(open(dir, inputs))(t).Close()
	}
	aside, _ := filepath.Glob(path + ".lost-*")
	expect.Same(t, "files that are set aside", 1, len(aside))
}

// A folder that a later version wrote is sound: nothing calls it damaged, and no rebuild sets its files aside.
func TestAFolderOfALaterVersion(t *testing.T) {
	for name, later := range map[string]func(t *testing.T, dir string){
		"Marker": func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, fileMarker), `"format": 1`, `"format": 9`)
		},
		"Records": func(t *testing.T, dir string) {
			db := expect.Get(bbolt.Open(filepath.Join(dir, fileRecords), 0o600, nil))(t)
			about := []byte("about")
			err := db.Update(func(tx *bbolt.Tx) error {
				value := bytes.Clone(tx.Bucket(about).Get(about)) // its checksum, and its format
				value[8] = 9
				for i, table := range []*crc32.Table{crc32.MakeTable(crc32.Castagnoli), crc32.IEEETable} {
					sum := crc32.Update(crc32.Update(0, table, about), table, value[8:])
					binary.BigEndian.PutUint32(value[4*i:], sum)
				}
				return tx.Bucket(about).Put(about, value)
			})
			expect.OK(t, errors.Join(err, db.Close()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			later(t, dir)
			before := contents(t, dir)
			for _, anew := range []bool{false, true} {
				_, err := open(dir, anew, inputs)
				expect.Says(t, fmt.Sprint("opening it, anew ", anew), fmt.Sprint(err), "was written by a newer version")
				expect.Never(t, fmt.Sprint("opening it, anew ", anew), fmt.Sprint(err), "rebuild")
			}
			expect.Says(t, "checking it", fmt.Sprint(expect.Err(Check(t.Context(), dir))), "was written by a newer version")
			expect.Same(t, "the folder", before, contents(t, dir))
		})
	}
}

// The embedded broker's clock never goes back, whatever becomes of the machine's.
func TestTheClockNeverGoesBack(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	wall, passed := start, time.Duration(0)
	c := &clock{wall: func() time.Time { return wall }, elapsed: func() time.Duration { return passed }}
	c.Now()
	for _, tc := range []struct {
		what        string
		wall, later time.Duration // what the machine's clock shows more, and what really passes
		want        time.Duration // since the start
	}{
		{"it follows the machine's", time.Second, time.Second, time.Second},
		{"which is set back: it goes on", -time.Hour, time.Second, 2 * time.Second},
		{"and on", time.Second, time.Second, 3 * time.Second},
		{"which is set right again", time.Hour + time.Second, time.Second, 4 * time.Second},
		{"the machine sleeps", 8 * time.Hour, 0, 8*time.Hour + 3*time.Second},
		{"nothing passes", 0, 0, 8*time.Hour + 3*time.Second},
	} {
		wall, passed = wall.Add(tc.wall), passed+tc.later
		expect.Same(t, tc.what, tc.want, c.Now().Sub(start))
	}
	expect.Same(t, "how far it is behind what was recorded before", 0, c.notBefore(wall.Add(-time.Second)))
	expect.Same(t, "how far it is behind", time.Hour, c.notBefore(wall.Add(time.Hour)))
	passed += time.Minute
	expect.Same(t, "after a restart with a clock that was set back", wall.Add(time.Hour+time.Minute), c.Now())
}

// The folder keeps the highest time at which anything was committed: after a
// restart with a clock that was set back meanwhile, times go on from there.
func TestTheFolderKeepsTheHighestTime(t *testing.T) {
	dir := t.TempDir()
	f := expect.Get(Open(dir, inputs))(t)
	ahead := now().Add(time.Hour)
	f.clock.wall = func() time.Time { return ahead }
	expect.OK(t, f.Records.Commit(t.Context(),
		store.Put(store.Record{Key: store.Key{Partition: "p", Sort: "s"}, Writer: "w", Schema: 1, Body: []byte("{}")})))
	f.Close()
	f = expect.Get(Open(dir, inputs))(t)
	defer f.Close()
	if f.Behind < 59*time.Minute || f.Now().Before(ahead) {
		t.Errorf("it is %v, %v behind; the last commit was at %v", f.Now(), f.Behind, ahead)
	}
}

// A check of records starts the tests' program again.
func TestMain(m *testing.M) {
	bolt.BeChecker()
	os.Exit(m.Run())
}
