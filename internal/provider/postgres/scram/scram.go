// Package scram computes the verifier that PostgreSQL stores for a password, so that no password is ever part
// of a statement: servers log statements, and show them in the list of sessions.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

const (
	// rounds is the number that PostgreSQL itself uses. The passwords are random: more rounds would slow each
	// login down, and protect nothing.
	rounds   = 4096
	saltSize = 16
)

// Verifier returns a password in the form that PostgreSQL stores, SCRAM-SHA-256 with a random salt. The
// result contains no single quote. Verifier refuses passwords beyond printable ASCII, which would have to be
// normalized as clients do.
func Verifier(password string) (string, error) {
	for _, r := range password {
		if r < ' ' || r > '~' {
			return "", fmt.Errorf("a password holds letters beyond printable ASCII")
		}
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails: see crypto/rand
	return verifier(password, salt)
}

func verifier(password string, salt []byte) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("deriving a key: %w", err)
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(stored[:]), text(sign(salted, "Server Key"))), nil
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
