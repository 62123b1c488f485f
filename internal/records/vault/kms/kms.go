// Package kms seals under a key of AWS KMS, which never leaves KMS. It owns the sealed form: a
// data key encrypts each value here, bound to the value's label, and KMS encrypts the data key,
// bound to the label's record. All values of a record that one request seals share one data key
// (see Together). The package needs a symmetric key, and the rights to generate data keys with
// it and to decrypt. AWS records the ids, and nothing else, in the trail of the key's use.
package kms

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// API holds the methods of *kms.Client that a Vault calls. Neither call changes anything.
type API interface {
	GenerateDataKey(
		ctx context.Context, in *kms.GenerateDataKeyInput, opts ...func(*kms.Options),
	) (*kms.GenerateDataKeyOutput, error)
	Decrypt(ctx context.Context, in *kms.DecryptInput, opts ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// A Vault seals by envelope encryption: sealing is one GenerateDataKey and opening one Decrypt,
// unless a data key is at hand (see Together). It is safe for use by many goroutines.
type Vault struct {
	client API
	keyID  string
}

var _ vault.Vault = (*Vault)(nil)

// New returns a vault over the key with this ARN, id or alias. It calls nothing.
func New(client API, keyID string) *Vault { return &Vault{client: client, keyID: keyID} }

const (
	// format is the first byte of a sealed value.
	format = 1
	// The sealed form is the format, the length of the encrypted data key, the encrypted data key, and
	// then the value that a vault.Cipher returns, bound to all of the preceding bytes and to the label.
	fixed = 1 + 2 // the length of the first two
	// maxKey is the greatest length that KMS decrypts.
	maxKey = 6144
)

// Seal implements vault.Vault.
func (v *Vault) Seal(ctx context.Context, label vault.Label, plaintext []byte) ([]byte, error) {
	if plaintext == nil {
		return nil, nil
	}
	key, err := v.sealing(ctx, label.Key)
	if err != nil {
		return nil, fmt.Errorf("generating a data key: %w", err)
	}
	return key.cipher.Seal(key.head, plaintext, bound(key.head, label)), nil
}

// bound returns the data that a value is bound to.
func bound(head []byte, label vault.Label) []byte { return slices.Concat(head, label.Bytes()) }

// generated returns a new data key for the members of a record.
func (v *Vault) generated(ctx context.Context, of lifecycle.Key) (dataKey, error) {
	out, err := v.client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: &v.keyID, KeySpec: types.DataKeySpecAes256, EncryptionContext: contextOf(of),
	})
	if err != nil {
		return dataKey{}, err
	}
	defer clear(out.Plaintext)
	cipher, err := vault.NewCipher(out.Plaintext)
	if err != nil {
		return dataKey{}, err
	}
	key := out.CiphertextBlob
	if len(key) == 0 || len(key) > maxKey {
		return dataKey{}, fmt.Errorf("its encrypted form has %d bytes", len(key))
	}
	return dataKey{append(binary.BigEndian.AppendUint16([]byte{format}, uint16(len(key))), key...), cipher}, nil
}

// Open implements vault.Vault. It returns ErrSealed only if KMS rejects the data key itself. If the key
// is disabled, forbidden or out of reach, it returns another error, and the value may well open later.
func (v *Vault) Open(ctx context.Context, label vault.Label, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	if len(sealed) < fixed || sealed[0] != format {
		return nil, vault.ErrSealed
	}
	length := int(binary.BigEndian.Uint16(sealed[1:]))
	if length == 0 || length > maxKey || len(sealed) < fixed+length+vault.Overhead {
		return nil, vault.ErrSealed
	}
	head, rest := sealed[:fixed+length], sealed[fixed+length:]
	key, err := v.opening(ctx, label.Key, head)
	if err != nil {
		return nil, err
	}
	return key.cipher.Open(rest, bound(head, label))
}

// decrypted returns the data key that KMS encrypted for a record; its head ends with the encrypted key.
func (v *Vault) decrypted(ctx context.Context, of lifecycle.Key, head []byte) (dataKey, error) {
	out, err := v.client.Decrypt(ctx, &kms.DecryptInput{
		KeyId: &v.keyID, CiphertextBlob: head[fixed:], EncryptionContext: contextOf(of),
	})
	switch {
	case errors.As(err, new(*types.InvalidCiphertextException)), errors.As(err, new(*types.IncorrectKeyException)):
		// The data key was changed, or was encrypted for another label or under another key.
		return dataKey{}, vault.ErrSealed
	case err != nil:
		return dataKey{}, fmt.Errorf("decrypting a data key: %w", err)
	}
	defer clear(out.Plaintext)
	cipher, err := vault.NewCipher(out.Plaintext)
	if err != nil { // the key was never one of this package's data keys
		return dataKey{}, vault.ErrSealed
	}
	return dataKey{head, cipher}, nil
}

// ContextKeys are all the names in the encryption contexts of data keys, for granting the use of the key.
var ContextKeys = []string{"platform", "instance", "binding", "member"}

// contextOf returns the encryption context to which KMS binds a data key. An absent id has no
// pair, so no other record has the same context. Hazard: the functions may use the key with a context
// only, so the table's data key, which belongs to no record, has one of its own.
func contextOf(of lifecycle.Key) map[string]string {
	if of == (lifecycle.Key{}) {
		return map[string]string{"member": string(vault.DataKey)}
	}
	c := map[string]string{"platform": of.Platform, "instance": of.Instance, "binding": of.Binding}
	maps.DeleteFunc(c, func(_, id string) bool { return id == "" })
	return c
}
