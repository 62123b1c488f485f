package ledger

import (
	"sync"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

const (
	// maxRemembered bounds the bytes of the records that are kept decoded: a
	// record may be of 390 KB, and a function may have 256 MB for everything.
	maxRemembered = 16 << 20
	// decodedAlone is what a decoded record takes at most without its body.
	decodedAlone = 2 << 10
)

// A memory keeps records as they were decoded, so that one that has not changed
// since is not decoded again: a platform polls the same record many times. The
// record itself is read from the store each time, so that nothing is ever
// stale: what is remembered is only used for the very version, by the very
// writer, that the store gave. The lifecycle's records never change in place.
type memory struct {
	mu    sync.RWMutex
	kept  map[store.Key]*decoded
	bytes int // of all that is kept
}

type decoded struct {
	version int64
	writer  string
	value   lifecycle.Record
	bytes   int
}

// is reports whether it is of this very record.
func (d *decoded) is(r store.Record) bool {
	return d != nil && d.version == r.Version && d.writer == r.Writer && r.Writer != ""
}

// recall gives the record as it was last read; nil if it is not kept.
func (m *memory) recall(key store.Key) *decoded {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.kept[key]
}

func (m *memory) keep(r store.Record, value lifecycle.Record) {
	size := decodedAlone + len(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.kept[r.Key]; old != nil {
		m.bytes -= old.bytes
	}
	m.bytes += size
	if m.kept == nil || m.bytes > maxRemembered {
		m.kept, m.bytes = make(map[store.Key]*decoded), size
	}
	m.kept[r.Key] = &decoded{r.Version, r.Writer, value, size}
}
