package platforms

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
)

// A Registrar stores the registry.
type Registrar interface {
	Registry(ctx context.Context) (Registry, error)
	// Change replaces the registry with the result of f. It changes nothing if f fails, or if
	// another change happens meanwhile, which is reported as ErrChanging.
	Change(ctx context.Context, f func(Registry) (Registry, error)) error
}

// ErrChanging says that two operators are changing the registry at once.
var ErrChanging = errors.New("somebody else is changing the platforms: run the command again")

// Names returns a function that gives the names of all platforms by id, including removed
// platforms, whose instances may still exist.
func Names(from Registrar) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		r, err := from.Registry(ctx)
		if err != nil {
			return nil, err
		}
		names := map[string]string{}
		for _, p := range r.Platforms {
			names[p.ID] = p.Name
		}
		return names, nil
	}
}

// idPrefix and idLength are of the ids of all platforms but the default one.
const (
	idPrefix = "p-"
	idLength = len(idPrefix) + 12
)

// NewID returns a new platform's id.
func NewID() string { return idPrefix + strings.ToLower(rand.Text())[:idLength-len(idPrefix)] }

// IsID reports whether a text looks like the id of a platform, rather than like its name.
func IsID(text string) bool {
	return text == Default || len(text) == idLength && strings.HasPrefix(text, idPrefix)
}

// NewPassword returns at least 128 random bits as letters and digits, which every platform and
// shell takes unquoted.
func NewPassword() string { return rand.Text() }
