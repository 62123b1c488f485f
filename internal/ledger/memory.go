package ledger

import (
	"sync"

	"github.com/longshore/longshore/internal/store"
)

// remembered bounds how many decoded records are kept.
const remembered = 1024

// A memory keeps records as they were decoded, so that one that has not changed
// since is not decoded again: a platform polls the same record many times. The
// record itself is read from the store each time, so that nothing is ever
// stale: what is remembered is only used for the very version, by the very
// writer, that the store gave. The lifecycle's records never change in place.
type memory struct {
	mu   sync.RWMutex
	kept map[store.Key]decoded
}

type decoded struct {
	version int64
	writer  string
	value   any
}

func (m *memory) recall(r store.Record) (any, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d, ok := m.kept[r.Key]
	if !ok || d.version != r.Version || d.writer != r.Writer || r.Writer == "" {
		return nil, false
	}
	return d.value, true
}

func (m *memory) keep(r store.Record, value any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.kept[r.Key]; m.kept == nil || !known && len(m.kept) >= remembered {
		m.kept = make(map[store.Key]decoded)
	}
	m.kept[r.Key] = decoded{r.Version, r.Writer, value}
}

// readKept reads a record of a kind that is read again and again.
func readKept[T any](l *Ledger, r store.Record, into *T) error {
	if value, ok := l.memory.recall(r); ok {
		*into = value.(T)
		return nil
	}
	if err := decode(r, into); err != nil {
		return err
	}
	l.memory.keep(r, *into)
	return nil
}
