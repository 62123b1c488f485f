package main

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

// An operator erases one of two users, from the broker that runs and from the folder at rest, and no message names the user.
func TestForget(t *testing.T) {
	b := newBench(t)
	asks := func(user string) {
		b.asker = "cloudfoundry " + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"user_name":%q}`, user))
	}
	for _, user := range []string{"ann", "bob"} {
		asks(user)
		b.provision("of-"+user, "sync", 0, 201)
	}
	forgets := func(want int, args ...string) string {
		t.Helper()
		said := b.operate(want, append([]string{"forget"}, args...)...)
		expect.Never(t, "what is told", said, "ann", "bob")
		return said
	}
	has(t, forgets(1, "ann"), "say --yes")
	has(t, forgets(0, "ann", "--yes"), "1 entries of histories and 1 operations do not say any more who asked.\n")
	has(t, forgets(0, "ann", "--yes"), "0 entries of histories and 0 operations")
	asks("ann")
	b.provision("slow", "async", 3600, 202)
	has(t, forgets(0, "ann", "--yes"), "1 operations of this user are in progress, and keep it: repeat the command")
	b.stop()
	has(t, forgets(0, "bob", "--yes"), "1 entries of histories and 1 operations")
	left := map[string]bool{}
	records := expect.Get(bolt.Open(b.dir+"/longshore.db", bolt.MustExist(), bolt.ReadOnly()))(t)
	defer func() { _ = records.Close() }()
	all, _, err := ledger.New(records, app.NewID).ScanHistories(t.Context(), "")
	if err != nil || len(all.Entries) != 2 {
		t.Fatal(len(all.Entries), err)
	}
	for _, e := range all.Entries {
		left[e.Key.Instance] = !e.Asker.IsZero()
	}
	for _, r := range all.Records {
		left[r.Key.Instance] = left[r.Key.Instance] || !r.Operation.Asker.IsZero()
	}
	expect.Same(t, "what still tells who asked", map[string]bool{"of-ann": false, "of-bob": false, "slow": true}, left)
}
