package datakey_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/testkit"
)

// counted counts what a vault opens. If it hangs, it answers only when its caller gives up.
type counted struct {
	vault.Vault
	opened int
	hangs  bool
}

func (c *counted) Open(ctx context.Context, label vault.Label, sealed []byte) ([]byte, error) {
	c.opened++
	if c.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.Vault.Open(ctx, label, sealed)
}

func over(t *testing.T, key byte) *counted {
	t.Helper()
	return &counted{Vault: expect.Get(vault.NewLocal(bytes.Repeat([]byte{key}, vault.KeySize)))(t)}
}

// Names and who asked open in every process by one opening of the data key, in the place that
// they were sealed for and in no other. Where the vault's key is lost there are none.
func TestNamesAndWhoAsked(t *testing.T) {
	records := ledger.New(memory.New(), testkit.IDs())
	ctx, by := t.Context(), over(t, 1)
	first := datakey.New(records, by)
	key := lifecycle.Key{Platform: "p", Instance: "i"}
	sealed := func(member vault.Member, plain string) lifecycle.Sealed {
		t.Helper()
		out := expect.Get(first.Seal(ctx, vault.Label{Key: key, Member: member}, []byte(plain)))(t)
		return out
	}
	i := lifecycle.Record{Key: key}
	i.Attributes.Names = sealed(vault.Names, `{"instance_name":"orders","space_name":"live"}`)
	second := datakey.New(records, by)
	for range 3 {
		expect.Same(t, "the names", lifecycle.Names{Instance: "orders", Space: "live"}, expect.Get(second.Names(ctx, i))(t))
	}
	for said, want := range map[string]string{
		`{"user_id":"u-1"}`: "u-1", `{"user_id":"u-1","user_name":"duke"}`: "duke", `{"username":"duke","uid":"c2"}`: "duke",
		`{"groups":["admin"]}`: "", `{"user_id":7}`: "",
	} {
		e := lifecycle.Entry{Key: key, Asker: lifecycle.Asker{Identity: sealed(vault.Identity, said)}}
		expect.Same(t, said, want, expect.Get(second.Who(ctx, e))(t))
		for _, user := range []string{"u-1", "duke", "c2", "admin", ""} {
			is := user != "" && user != "admin" && strings.Contains(said, `"`+user+`"`)
			expect.Same(t, said+" by "+user, is, expect.Get(second.AskedBy(ctx, e, user))(t))
		}
	}
	expect.Same(t, "times that the data key was opened", 1, by.opened)
	elsewhere := i
	elsewhere.Key.Instance = "j"
	expect.Same(t, "names of another instance", lifecycle.Names{}, expect.Get(second.Names(ctx, elsewhere))(t))
	lost := datakey.New(records, over(t, 2))
	expect.Same(t, "names under a lost key", lifecycle.Names{}, expect.Get(lost.Names(ctx, i))(t))
	again := expect.Get(datakey.New(records, by).Names(ctx, i))(t)
	expect.Same(t, "a name after a look with another key", "orders", again.Instance)
}

// While the vault hangs, nobody waits longer than they want to, and it is asked again later.
func TestAVaultThatHangs(t *testing.T) {
	records := ledger.New(memory.New(), testkit.IDs())
	by, label := over(t, 1), vault.Label{Member: vault.Link}
	expect.Get(datakey.New(records, by).Seal(t.Context(), label, []byte("x")))(t)
	by.hangs = true
	v := datakey.New(records, by)
	long, end := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() { _, err := v.Seal(long, label, []byte("x")); waits <- err }()
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	expect.Fails(t, "the error", context.DeadlineExceeded, expect.Err(v.Seal(short, label, []byte("x"))))
	end()
	expect.Fails(t, "the error", context.Canceled, <-waits)
	by.hangs = false
	expect.Get(v.Seal(t.Context(), label, []byte("x")))(t)
}
