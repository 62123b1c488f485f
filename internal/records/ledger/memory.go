package ledger

import (
	"sync"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

const (
	// maxRemembered bounds the bytes of the decoded records in memory: a record may have 390
	// KB, and a function may have 256 MB for everything.
	maxRemembered = 16 << 20
	// decodedAlone is the most that a decoded record takes without its body.
	decodedAlone = 2 << 10
)

// A memory keeps records as they were decoded or written, so that an unchanged record is not
// decoded again: a platform polls the same record many times, and the first step of an
// operation reads the record that its request has written. The record itself is read from the
// store each time, so nothing is ever stale: a remembered record is only used if the store
// returned the same version by the same writer. The lifecycle's records never change in place.
type memory struct {
	mu    sync.RWMutex
	kept  map[store.Key]*decoded
	bytes int // the size of all kept records
}

type decoded struct {
	key     store.Key
	version int64
	writer  string
	value   lifecycle.Record
	bytes   int
}

// is reports whether d was decoded from this stored record.
func (d *decoded) is(r store.Record) bool {
	return d != nil && d.version == r.Version && d.writer == r.Writer && r.Writer != ""
}

// recall returns the record as it was last read; nil if it is not kept.
func (m *memory) recall(key store.Key) *decoded {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.kept[key]
}

// decodedAt returns a decoded record with the key, version and writer of the stored one. Its lifecycle.Key is
// empty: the ids in a key may be parts of a whole request, and would keep that in memory.
func decodedAt(r store.Record, value lifecycle.Record) *decoded {
	value.Key, value.Version = lifecycle.Key{}, r.Version
	return &decoded{r.Key, r.Version, r.Writer, value, decodedAlone + len(r.Body)}
}

// keep remembers records, and forgets all others when they become too large.
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
