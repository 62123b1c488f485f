// Package recent keeps values that a process has read, so that it asks AWS less often. Its callers
// decide how long a value is valid.
package recent

import "sync"

// most is how many values are kept. When another one is added, all others are forgotten.
const most = 20_000

// Values holds values by their keys. The zero Values is empty.
type Values[V any] struct {
	mu  sync.Mutex
	all map[string]V
}

// Get returns the value of a key; the zero value and false if there is none.
func (v *Values[V]) Get(key string) (value V, there bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	value, there = v.all[key]
	return value, there
}

// Put stores a value.
func (v *Values[V]) Put(key string, value V) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil || len(v.all) >= most {
		v.all = map[string]V{}
	}
	v.all[key] = value
}
