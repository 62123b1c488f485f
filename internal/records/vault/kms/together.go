package kms

import (
	"context"
	"sync"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// A dataKey seals and opens the members of one record. Its head precedes each sealed member,
// and holds the key as KMS encrypted it.
type dataKey struct {
	head   []byte
	cipher vault.Cipher
}

// atHand holds the data keys that one request has asked KMS for.
type atHand struct {
	mu   sync.Mutex
	keys map[name]dataKey
}

// A name names a data key, which KMS hands out for this record only. The head is empty for the key that seals: a key
// that KMS has decrypted never seals, since whoever writes records must not be able to choose the key of the values
// that are sealed next.
type name struct {
	vault *Vault
	of    lifecycle.Key
	head  string
}

type contextKey struct{}

// Together begins a request. All values that are sealed for a record under its context share one
// data key, which takes one call of KMS; opening values that share a data key takes one call as
// well. The keys go with the context, so disabling the key in KMS stops the next request.
func Together(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &atHand{keys: map[name]dataKey{}})
}

// sealing returns the data key for a record.
func (v *Vault) sealing(ctx context.Context, of lifecycle.Key) (dataKey, error) {
	return handOf(ctx).key(name{v, of, ""}, func() (dataKey, error) { return v.generated(ctx, of) })
}

// opening returns the data key with this head.
func (v *Vault) opening(ctx context.Context, of lifecycle.Key, head []byte) (dataKey, error) {
	return handOf(ctx).key(name{v, of, string(head)}, func() (dataKey, error) { return v.decrypted(ctx, of, head) })
}

// key returns the key at hand under a name; if there is none, it asks for the key, which is then at hand
// under its head as well. Two goroutines may ask at once, and both answers are right.
func (h *atHand) key(name name, ask func() (dataKey, error)) (dataKey, error) {
	h.mu.Lock()
	key, ok := h.keys[name]
	h.mu.Unlock()
	if ok {
		return key, nil
	}
	key, err := ask()
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.keys[name] = key
		name.head = string(key.head)
		h.keys[name] = key
	}
	return key, err
}

// handOf returns the keys at hand in the request; outside of a request, keys are forgotten at once.
func handOf(ctx context.Context) *atHand {
	if hand, ok := ctx.Value(contextKey{}).(*atHand); ok {
		return hand
	}
	return Together(ctx).Value(contextKey{}).(*atHand)
}
