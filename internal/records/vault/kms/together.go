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

// atHand holds the data keys that one request has asked KMS for. A key that KMS has decrypted never
// seals: whoever writes records must not be able to choose the key of the values that are sealed next.
type atHand struct {
	mu   sync.Mutex
	seal map[sealingFor]dataKey
	open map[openingOf]vault.Cipher
}

// sealingFor and openingOf name a data key, which KMS hands out for this record only.
type (
	sealingFor struct {
		vault *Vault
		of    lifecycle.Key
	}
	openingOf struct {
		sealingFor
		head string
	}
)

type contextKey struct{}

// Together begins a request. All values that are sealed for a record under its context share one
// data key, which takes one call of KMS; opening values that share a data key takes one call as
// well. The keys go with the context, so disabling the key in KMS stops the next request.
func Together(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &atHand{seal: map[sealingFor]dataKey{}, open: map[openingOf]vault.Cipher{}})
}

// sealing returns the data key for a record.
func (v *Vault) sealing(ctx context.Context, of lifecycle.Key) (dataKey, error) {
	hand, name := handOf(ctx), sealingFor{v, of}
	return known(hand, hand.seal, name, func() (dataKey, error) {
		key, err := v.generated(ctx, of)
		if err != nil {
			return key, err
		}
		opens := openingOf{name, string(key.head)}
		_, err = known(hand, hand.open, opens, func() (vault.Cipher, error) { return key.cipher, nil })
		return key, err
	})
}

// opening returns the cipher of a data key; head holds the key as KMS encrypted it.
func (v *Vault) opening(ctx context.Context, of lifecycle.Key, head, encrypted []byte) (vault.Cipher, error) {
	hand := handOf(ctx)
	return known(hand, hand.open, openingOf{sealingFor{v, of}, string(head)}, func() (vault.Cipher, error) {
		return v.decrypted(ctx, of, encrypted)
	})
}

// known returns the key at hand under a name; if there is none, it asks for the key. Two
// goroutines may ask at once, and both answers are right.
func known[Name comparable, Key any](hand *atHand, all map[Name]Key, name Name, ask func() (Key, error)) (Key, error) {
	hand.mu.Lock()
	key, ok := all[name]
	hand.mu.Unlock()
	if ok {
		return key, nil
	}
	key, err := ask()
	if err == nil {
		hand.mu.Lock()
		defer hand.mu.Unlock()
		all[name] = key
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
