// Package recent keeps values that a process has read, so that it asks AWS less often. It
// leaves to its callers how long a value counts.
package recent

import "sync"

// most is how many values are kept. At one more, all are forgotten.
const most = 20_000

// Values are kept by their keys. The zero Values has none.
type Values[V any] struct {
	mu  sync.Mutex
	all map[string]V
}

// Get gives the zero value if there is none.
func (v *Values[V]) Get(key string) (value V, there bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	value, there = v.all[key]
	return value, there
}

// Put keeps a value.
func (v *Values[V]) Put(key string, value V) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil || len(v.all) >= most {
		v.all = map[string]V{}
	}
	v.all[key] = value
}
