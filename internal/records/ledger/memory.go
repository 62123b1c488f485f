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

// A memory keeps records as they were decoded or written, so that one that has not
// changed since is not decoded again: a platform polls the same record many times, and
// the first step of an operation reads what its request has written. The
// record itself is read from the store each time, so that nothing is ever
// stale: what is remembered is only used for the very version, by the very
// writer, that the store gave. The lifecycle's records never change in place.
type memory struct {
	mu    sync.RWMutex
	kept  map[store.Key]*decoded
	bytes int // of all that is kept
}

type decoded struct {
	key     store.Key
	version int64
	writer  string
	value   lifecycle.Record
	bytes   int
}

// is reports whether it was decoded from this very record.
func (d *decoded) is(r store.Record) bool {
	return d != nil && d.version == r.Version && d.writer == r.Writer && r.Writer != ""
}

// recall gives the record as it was last read; nil if it is not kept.
func (m *memory) recall(key store.Key) *decoded {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.kept[key]
}

// decodedAt is a record at its version, with what was decoded from it or encoded in it. It
// has no lifecycle.Key, whose ids may be cut from a whole request and would keep it.
func decodedAt(r store.Record, value lifecycle.Record) *decoded {
	value.Key, value.Version = lifecycle.Key{}, r.Version
	return &decoded{r.Key, r.Version, r.Writer, value, decodedAlone + len(r.Body)}
}

// keep remembers records, and forgets all others when they are too many.
func (m *memory) keep(records ...*decoded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range records {
		if old := m.kept[d.key]; old != nil {
			m.bytes -= old.bytes
		}
		m.bytes += d.bytes
		if m.kept == nil || m.bytes > maxRemembered {
			m.kept, m.bytes = make(map[store.Key]*decoded), d.bytes
		}
		m.kept[d.key] = d
	}
}
