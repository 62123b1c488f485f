package vault_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

func label(platform, instance, binding string, m vault.Member) vault.Label {
	return vault.Label{Key: lifecycle.Key{Platform: platform, Instance: instance, Binding: binding}, Member: m}
}

func newVault(t *testing.T) *vault.Local {
	t.Helper()
	v, err := vault.NewLocal(bytes.Repeat([]byte{7}, 32))
	expect.OK(t, err)
	return v
}

func TestSealedValuesOpenWhereTheyWereSealedFor(t *testing.T) {
	ctx, v := context.Background(), newVault(t)
	at := label("p", "ab", "c", vault.Grant)
	for name, plain := range map[string][]byte{"Text": []byte("secret"), "Empty": {}, "None": nil} {
		sealed, err := v.Seal(ctx, at, plain)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		opened, err := v.Open(ctx, at, sealed)
		if err != nil || !bytes.Equal(opened, plain) || (opened == nil) != (plain == nil) {
			t.Errorf("%s: opened %q: %v", name, opened, err)
		}
		if len(plain) > 0 && bytes.Contains(sealed, plain) {
			t.Errorf("%s: sealed in clear", name)
		}
	}
	sealed, err := v.Seal(ctx, at, []byte("secret"))
	expect.OK(t, err)
	again, err := v.Seal(ctx, at, []byte("secret"))
	if err != nil || bytes.Equal(sealed, again) {
		t.Errorf("sealing twice gives the same: %v", err)
	}
	for name, other := range map[string]vault.Label{
		"Platform": label("q", "ab", "c", vault.Grant), "Instance": label("p", "xx", "c", vault.Grant),
		"Binding": label("p", "ab", "", vault.Grant),
		"Member":  label("p", "ab", "c", vault.Secret), "Shifted": label("p", "a", "bc", vault.Grant),
	} {
		expect.Fails(t, fmt.Sprintf("it opened for another %s", name), vault.ErrSealed, expect.Err(v.Open(ctx, other, sealed)))
	}
	for n := range sealed {
		broken := bytes.Clone(sealed)
		broken[n] ^= 1
		expect.Fails(t, fmt.Sprintf("it opened with byte %d changed", n), vault.ErrSealed, expect.Err(v.Open(ctx, at, broken)))
		expect.Fails(t, fmt.Sprintf("it opened when cut at %d", n), vault.ErrSealed, expect.Err(v.Open(ctx, at, sealed[:n])))
	}
}

func TestKeyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.key")
	expect.Fails(t, "reading a missing key", fs.ErrNotExist, expect.Err(vault.ReadKeyFile(path)))
	expect.OK(t, vault.CreateKeyFile(path))
	before, err := os.ReadFile(path)
	expect.OK(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	expect.Fails(t, "a key was made over another", fs.ErrExist, vault.CreateKeyFile(path))
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the key was changed: %v", err)
	}
	if _, err := vault.ReadKeyFile(path); err != nil {
		t.Error(err)
	}
	expect.OK(t, os.Truncate(path, 7))
	if _, err := vault.ReadKeyFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a key that was cut short: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind %v: %v", left, err)
	}
}

// A check value tells the key that sealed it from all others.
func TestCheckValues(t *testing.T) {
	ctx, v := context.Background(), newVault(t)
	check, err := vault.NewCheck(ctx, v)
	expect.OK(t, err)
	if same, err := vault.IsCheck(ctx, v, check); err != nil || !same {
		t.Errorf("its own key: %v %v", same, err)
	}
	for n := range 256 {
		key := bytes.Repeat([]byte{7}, 32)
		key[n/8] ^= 1 << (n % 8)
		other, err := vault.NewLocal(key)
		expect.OK(t, err)
		if same, err := vault.IsCheck(ctx, other, check); err != nil || same {
			t.Errorf("a key with bit %d changed: %v %v", n, same, err)
		}
	}
	if same, err := vault.IsCheck(ctx, unreachable{}, check); err == nil || same {
		t.Errorf("a vault out of reach: %v %v", same, err)
	}
}

// unreachable is a vault that cannot be asked now.
type unreachable struct{ vault.Vault }

func (unreachable) Open(context.Context, vault.Label, []byte) ([]byte, error) {
	return nil, errors.New("out of reach")
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
	sealed, err := hex.DecodeString("017b5dc4894390801c30b882640fbd4d220ad67ec2b8ea6049ee5b9677ec0b55f6b6be17")
	expect.OK(t, err)
	got, err := newVault(t).Open(t.Context(), label("p", "i", "b", vault.Grant), sealed)
	if err != nil || string(got) != "a grant" {
		t.Errorf("got %q and error %v", got, err)
	}
}
