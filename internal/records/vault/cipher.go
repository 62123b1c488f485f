package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"slices"
)

// KeySize is the length of a key in bytes. Overhead is the length that a sealed value has
// beside its head and plaintext: a nonce and a tag.
const (
	KeySize  = 32
	Overhead = 12 + 16
)

// A Cipher is AES-256-GCM under one key. Each value is preceded by a random nonce of its own,
// so a key must seal fewer than 2^32 values.
type Cipher struct{ aead cipher.AEAD }

// NewCipher takes a key of KeySize bytes; for any other length the error is ErrKey.
func NewCipher(key []byte) (Cipher, error) {
	if len(key) != KeySize {
		return Cipher{}, fmt.Errorf("%w: it has %d bytes, not %d", ErrKey, len(key), KeySize)
	}
	block, _ := aes.NewCipher(key) // fails only for keys of another length
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Cipher{aead}, err
}

// Seal returns head, followed by the plaintext, which is encrypted, and authenticated together with the bound data.
func (c Cipher) Seal(head, plaintext, bound []byte) []byte {
	return c.aead.Seal(slices.Clip(head), nil, plaintext, bound)
}

// Open returns the plaintext of a value that Seal returned; sealed is that value without its
// head. If it does not open, the error is ErrSealed. An empty plaintext is not nil.
func (c Cipher) Open(sealed, bound []byte) ([]byte, error) {
	plaintext, err := c.aead.Open([]byte{}, nil, sealed, bound)
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}
