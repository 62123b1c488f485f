package vault_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/vaulttest"
)

func label(platform, instance, binding string, m vault.Member) vault.Label {
	return vault.Label{Key: lifecycle.Key{Platform: platform, Instance: instance, Binding: binding}, Member: m}
}

func newVault(t *testing.T) *vault.Local {
	t.Helper()
	return expect.Get(vault.NewLocal(bytes.Repeat([]byte{7}, 32)))(t)
}

func TestLocal(t *testing.T) {
	vaulttest.Run(t, func(t *testing.T) (v, again, stranger vault.Vault) {
		return newVault(t), newVault(t), expect.Get(vault.NewLocal(bytes.Repeat([]byte{8}, 32)))(t)
	})
}

func TestKeyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.key")
	expect.Fails(t, "reading a missing key", fs.ErrNotExist, expect.Err(vault.ReadKeyFile(path)))
	expect.OK(t, vault.CreateKeyFile(path))
	before := expect.Get(os.ReadFile(path))(t)
	expect.Same(t, "its mode", 0o600, expect.Get(os.Stat(path))(t).Mode().Perm())
	expect.Fails(t, "a key was made over another", fs.ErrExist, vault.CreateKeyFile(path))
	expect.Same(t, "the key afterwards", before, expect.Get(os.ReadFile(path))(t))
	expect.Get(vault.ReadKeyFile(path))(t)
	expect.OK(t, os.Truncate(path, 7))
	expect.Says(t, "a key that was cut short", fmt.Sprint(expect.Err(vault.ReadKeyFile(path))), path)
	left := expect.Get(filepath.Glob(filepath.Join(filepath.Dir(path), ".*")))(t)
	expect.Same(t, "what is left behind", 0, len(left))
}

// A check value tells the key that sealed it from all others.
func TestCheckValues(t *testing.T) {
	v := newVault(t)
	check := v.Check()
	expect.Same(t, "its own key", true, v.Proves(check))
	for n := range 256 {
		key := bytes.Repeat([]byte{7}, 32)
		key[n/8] ^= 1 << (n % 8)
		other := expect.Get(vault.NewLocal(key))(t)
		expect.Same(t, fmt.Sprintf("a key with bit %d changed", n), false, other.Proves(check))
	}
}

// TestSealedMembersAreNamed proves that Of names each sealed member of a record: without one,
// a key would be proved or given up wrongly.
func TestSealedMembersAreNamed(t *testing.T) {
	i := lifecycle.Record{Operation: &lifecycle.Operation{Target: &lifecycle.Attributes{}}}
	var b lifecycle.Record
	for name, c := range map[string]struct {
		record any
		named  func() []vault.Value
	}{
		"Instance": {&i, func() []vault.Value { return vault.Of(i) }},
		"Binding":  {&b, func() []vault.Value { return vault.Of(b) }},
	} {
		expect.Same(t, fmt.Sprintf("%s: values of one that holds nothing", name), 0, len(c.named()))
		// Names and who asked may be lost, and are not among them.
		if filled := seal(reflect.ValueOf(c.record).Elem()); filled == 0 || len(c.named()) != filled {
			t.Errorf("%s: %d sealed members, %d named", name, filled, len(c.named()))
		}
	}
}

// seal fills all members that are sealed, and counts them.
func seal(v reflect.Value) (n int) {
	switch {
	case v.Type() == reflect.TypeFor[lifecycle.Asker]():
	case v.Type() == reflect.TypeFor[lifecycle.Sealed]():
		v.SetBytes([]byte("sealed"))
		return 1
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return seal(v.Elem())
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for f := range v.NumField() {
			if v.Type().Field(f).Name != "Names" {
				n += seal(v.Field(f))
			}
		}
	}
	return n
}

// A value that was sealed when the form was made opens for ever.
func TestTheFormIsGolden(t *testing.T) {
	sealed := expect.Get(hex.DecodeString("017b5dc4894390801c30b882640fbd4d220ad67ec2b8ea6049ee5b9677ec0b55f6b6be17"))(t)
	got := expect.Get(newVault(t).Open(t.Context(), label("p", "i", "b", vault.Grant), sealed))(t)
	expect.Same(t, "the value", "a grant", string(got))
}
