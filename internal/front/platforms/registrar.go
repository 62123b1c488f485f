package platforms

import (
	"context"
	"crypto/rand"
	"errors"
)

// A Registrar keeps the registry.
type Registrar interface {
	Registry(ctx context.Context) (Registry, error)
	// Change replaces the registry with what f makes of it. It changes nothing if f fails,
	// or if somebody else changes the registry meanwhile, which is ErrChanging.
	Change(ctx context.Context, f func(Registry) (Registry, error)) error
}

// ErrChanging says that two operators change the registry at once.
var ErrChanging = errors.New("somebody else is changing the platforms: run the command again")

// Names gives the names of all platforms by their ids, removed ones included: what these
// made may be left.
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

// NewPassword is at least 128 random bits in letters and digits, which every platform
// and shell takes unquoted.
func NewPassword() string { return rand.Text() }
