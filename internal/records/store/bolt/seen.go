package bolt

import (
	"math"
	"sync"

	"github.com/longshore/longshore/internal/records/store"
)

// mostSeen bounds the number of remembered records.
const mostSeen = 4096

// A seen holds records as they were last read, without their bodies, for callers that have the
// body and ask whether it is still current: platforms poll one record many times. Only this
// process writes the file, so a record stays true until a commit begins to change it; then it
// is dropped. A read that began before that commit may end after it, and is not remembered.
type seen struct {
	mu   sync.RWMutex
	kept map[store.Key]store.Record
	// from is the first transaction whose reads are remembered.
	from int64
}

// recall returns a record if it has this version and this writer.
func (s *seen) recall(key store.Key, version int64, writer string) (store.Record, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.kept[key]
	return r, ok && r.Version == version && r.Writer == writer
}

// remember keeps a record that a transaction has read.
func (s *seen) remember(r store.Record, transaction int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if transaction < s.from {
		return
	}
	if s.kept == nil || len(s.kept) >= mostSeen {
		s.kept = map[store.Key]store.Record{}
	}
	r.Body = nil
	s.kept[r.Key] = r
}

// forget drops the records that a transaction is about to change.
func (s *seen) forget(group []*set, transaction int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = transaction
	for _, set := range group {
		for _, change := range set.changes {
			delete(s.kept, change.Record.Key)
		}
	}
}

// end drops everything and remembers nothing more.
func (s *seen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.from = nil, math.MaxInt64
}
