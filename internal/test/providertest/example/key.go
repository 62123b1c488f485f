package example

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/secret"
)

// Keys gives access to the keys of one binding, in a service that chooses their secrets and shows each secret once.
type Keys struct {
	// Create makes a key.
	Create func(ctx context.Context) (Key, error)
	// List returns the ids of all keys of the binding that the service accepts.
	List func(ctx context.Context) (ids []string, err error)
	// Delete removes the key with an id. If the key is gone already, that is success. A call
	// that removed "all but this one" could come late, and remove a key that was granted since.
	Delete func(ctx context.Context, id string) error
	// Opens reports whether the service accepts the key with its secret.
	Opens func(ctx context.Context, k Key) (bool, error)
}

// keyFormat is the version of Key.
const keyFormat = 1

// A Key is a key of a binding, and the State of the binding.
type Key struct {
	secret.Holder
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"` // in State only until the grant is recorded
}

// OneKey gives a binding its one key in two steps. The first step makes a key and returns its
// secret as state, not done. The next step finds the key in the binding's state, tries it, and
// is done: the caller puts the key into the grant.
//
// Hazard: the answer of Create may be lost, or die with its process. The key then has a secret that is
// not recorded, and that somebody may have seen: so each step deletes all keys but the recorded one.
func OneKey(ctx context.Context, was provider.State, keys Keys) (st provider.Status, k Key, err error) {
	if err := was.Read(keyFormat, &k); err != nil {
		return provider.Status{}, k, err
	}
	opens := false
	if k.Secret != "" {
		if opens, err = keys.Opens(ctx, k); err != nil {
			return provider.Status{}, k, err
		}
	}
	if !opens {
		k = Key{}
	}
	ids, err := keys.List(ctx)
	if err != nil {
		return provider.Status{}, k, err
	}
	for _, other := range ids {
		if other == k.ID {
			continue
		}
		if err := keys.Delete(ctx, other); err != nil {
			return provider.Status{}, k, err
		}
	}
	if opens {
		return provider.Status{Done: true, Percent: 100, State: provider.StateOf(keyFormat, Key{ID: k.ID})}, k, nil
	}
	if k, err = keys.Create(ctx); err != nil {
		return provider.Status{}, k, err
	}
	return provider.Status{Percent: 80, Description: "Creating the key", State: provider.StateOf(keyFormat, k)}, k, nil
}
