package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"slices"
)

// Lengths in bytes: of a key, and what a sealed value has beside its head and
// plaintext, which is a nonce and a tag.
const (
	KeySize  = 32
	Overhead = 12 + 16
)

// A Cipher is AES-256-GCM under one key, with a random nonce for each value, which stands
// before it: a key must seal fewer than 2^32 values.
type Cipher struct{ aead cipher.AEAD }

// NewCipher takes a key of KeySize bytes; any other is ErrKey.
func NewCipher(key []byte) (Cipher, error) {
	if len(key) != KeySize {
		return Cipher{}, fmt.Errorf("%w: it has %d bytes, not %d", ErrKey, len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return Cipher{}, fmt.Errorf("making a cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Cipher{aead}, err
}

// Seal gives head, and the plaintext encrypted and authenticated together with the data
// that it is bound to.
func (c Cipher) Seal(head, plaintext, bound []byte) []byte {
	return c.aead.Seal(slices.Clip(head), nil, plaintext, bound)
}

// Open takes what Seal gave, without its head. What does not open is ErrSealed. A
// plaintext of no bytes is not nil.
func (c Cipher) Open(sealed, bound []byte) ([]byte, error) {
	plaintext, err := c.aead.Open([]byte{}, nil, sealed, bound)
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}
