package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
)

// Lengths in bytes: of a key, and what a sealed value has beside its head and
// plaintext, which is a nonce and a tag.
const (
	KeySize  = 32
	Overhead = 12 + 16
)

// A Cipher is AES-256-GCM under one key, with a random nonce for each value: a
// key must seal fewer than 2^32 values.
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
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return Cipher{}, fmt.Errorf("making a cipher: %w", err)
	}
	return Cipher{aead}, nil
}

// Seal gives head, a new nonce, and the plaintext encrypted and authenticated
// together with the data that it is bound to.
func (c Cipher) Seal(head, plaintext, bound []byte) ([]byte, error) {
	size := len(head) + c.aead.NonceSize()
	out := make([]byte, size, len(head)+len(plaintext)+Overhead)
	nonce := out[copy(out, head):]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	return c.aead.Seal(out, nonce, plaintext, bound), nil
}

// Open takes what Seal gave, without its head. Whatever does not open is
// ErrSealed. A plaintext of no bytes is not nil.
func (c Cipher) Open(sealed, bound []byte) ([]byte, error) {
	if len(sealed) < Overhead {
		return nil, ErrSealed
	}
	plaintext, err := c.aead.Open([]byte{}, sealed[:c.aead.NonceSize()], sealed[c.aead.NonceSize():], bound)
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}
