// Package vault seals secrets before they are stored: users' parameters, credentials, and the
// random secrets that credentials derive from. It owns the sealed form. Other packages decide which
// values are sealed and where they are stored. On one machine the key is a file (vault.Local).
package vault

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A Label binds a sealed value to the place that it was sealed for: a value that is copied into
// another record, or into another member of the same record, does not open.
type Label struct {
	Key    lifecycle.Key // the record's key
	Member Member
}

// A Member says which value of a record is sealed.
type Member string

// The members.
const (
	Parameters Member = "parameters"
	Secret     Member = "secret"
	Grant      Member = "grant"
	State      Member = "state"
	Context    Member = "context"
	Identity   Member = "identity"
	Names      Member = "names"
	// DataKey is the member for the table's own data key; Link, Attempt and Session belong to
	// the pages. None belongs to a record.
	DataKey Member = "data key"
	Link    Member = "link"
	Attempt Member = "attempt"
	Session Member = "session"
	// SignOn is the secret with which this broker proves itself to a login where people sign on.
	SignOn Member = "signon"
	// check belongs to no record: it labels a value whose only use is to prove the key.
	check Member = "check"
)

// Bytes returns the bytes to which a Cipher binds a value. They are unambiguous: each part is preceded by its length.
func (l Label) Bytes() []byte {
	var out []byte
	for _, part := range []string{l.Key.Platform, l.Key.Instance, l.Key.Binding, string(l.Member)} {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}

// A Vault seals and opens. Many goroutines may call both methods at once.
type Vault interface {
	// Seal encrypts and authenticates plaintext for the label. Sealing the same plaintext twice
	// gives different results. Nil seals to nil.
	Seal(ctx context.Context, label Label, plaintext []byte) ([]byte, error)
	// Open returns the plaintext that was sealed for the same label, or ErrSealed. Nil opens to nil.
	Open(ctx context.Context, label Label, sealed []byte) ([]byte, error)
}

// ErrSealed says that the value was sealed with another key or for another label, or was changed since.
var ErrSealed = errors.New("sealed value does not open: it was sealed with another key, or was changed")

// ErrKey says that a value cannot be a key.
var ErrKey = errors.New("not a vault's key")

// A Value is a sealed member of a record, with the label that it was sealed for.
type Value struct {
	Label  Label
	Sealed lifecycle.Sealed
}

// Of returns the values of a record that a vault has sealed, including those of a running
// operation. It leaves out values under the table's data key, which may be lost.
func Of(r lifecycle.Record) []Value {
	values := append(ofAttributes(r.Key, r.Attributes),
		Value{Label{r.Key, Secret}, r.Secret}, Value{Label{r.Key, Grant}, r.Grant},
		Value{Label{r.Key, State}, r.Made.State})
	if op := r.Operation; op != nil && op.Target != nil {
		values = append(values, ofAttributes(r.Key, *op.Target)...)
	}
	return slices.DeleteFunc(values, func(v Value) bool { return v.Sealed == nil })
}

func ofAttributes(key lifecycle.Key, a lifecycle.Attributes) []Value {
	return []Value{{Label{key, Parameters}, a.Parameters}, {Label{key, Context}, a.SealedContext}}
}

// A Local vault seals under one key kept in a file. A sealed value is the format byte, then the
// bytes that its Cipher returns.
type Local struct{ cipher Cipher }

// format is the first byte of a value that Local sealed.
const format = 1

// NewLocal returns a vault with a key of KeySize bytes; for any other length the error is ErrKey.
func NewLocal(key []byte) (*Local, error) {
	c, err := NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &Local{c}, nil
}

// Seal implements Vault.
func (v *Local) Seal(_ context.Context, label Label, plaintext []byte) ([]byte, error) {
	if plaintext == nil {
		return nil, nil
	}
	return v.cipher.Seal([]byte{format}, plaintext, label.Bytes()), nil
}

// Open implements Vault.
func (v *Local) Open(_ context.Context, label Label, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	if len(sealed) == 0 || sealed[0] != format {
		return nil, ErrSealed
	}
	return v.cipher.Open(sealed[1:], label.Bytes())
}

// Check returns a check value, which tells later whether a key is the one that was used before.
func (v *Local) Check() []byte {
	return v.cipher.Seal([]byte{format}, []byte("longshore"), Label{Member: check}.Bytes())
}

// Opens reports whether a value opens. False is final: this vault is never out of reach.
func (v *Local) Opens(value Value) bool {
	_, err := v.Open(context.Background(), value.Label, value.Sealed)
	return err == nil
}

// Proves reports whether the vault's key is the one that sealed the check value.
func (v *Local) Proves(sealed []byte) bool { return v.Opens(Value{Label{Member: check}, sealed}) }

// CreateKeyFile writes a new random key to path with mode 0600. If the file exists, it is left alone and
// the error is fs.ErrExist: replacing a key makes everything that was sealed with it unreadable.
func CreateKeyFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".vault-*")
	if err == nil {
		defer func() { _ = os.Remove(f.Name()) }()
		key := make([]byte, KeySize)
		_, _ = rand.Read(key) // never fails
		_, err = f.Write(key)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Link(f.Name(), path) // unlike a rename, a link never replaces a file
	}
	if err != nil {
		return fmt.Errorf("creating the vault's key %q: %w", path, err)
	}
	return nil
}

// ReadKeyFile returns a vault with the key that CreateKeyFile wrote.
func ReadKeyFile(path string) (*Local, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the vault's key: %w", err)
	}
	v, err := NewLocal(key)
	if err != nil {
		return nil, fmt.Errorf("reading the vault's key %q: %w", path, err)
	}
	return v, nil
}
