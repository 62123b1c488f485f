package demotest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/longshore/longshore/internal/provider/demo"
)

// A Memory is demo.Things that end with the process, for tests that need
// thousands of fresh ones.
type Memory struct {
	mu       sync.Mutex
	things   map[string]demo.Thing
	revision int
}

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{things: map[string]demo.Thing{}} }

// Clone makes other Things that are the same.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{things: maps.Clone(m.things), revision: m.revision}
}

// MemoryPageSize is how many things a page of a Memory holds.
const MemoryPageSize = 25

func (m *Memory) put(t demo.Thing) {
	m.revision++
	t.Revision = strconv.Itoa(m.revision)
	m.things[t.Name] = t
}

// Create implements demo.Things.
func (m *Memory) Create(ctx context.Context, t demo.Thing) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.things[t.Name]; ok {
		return demo.ErrExists
	}
	m.put(t)
	return ctx.Err()
}

// Get implements demo.Things.
func (m *Memory) Get(ctx context.Context, name string) (demo.Thing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.things[name]
	if !ok {
		return t, demo.ErrNotFound
	}
	return t, ctx.Err()
}

// Replace implements demo.Things.
func (m *Memory) Replace(ctx context.Context, t demo.Thing) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, ok := m.things[t.Name]; !ok || was.Revision != t.Revision {
		return demo.ErrChanged
	}
	m.put(t)
	return ctx.Err()
}

// Delete implements demo.Things.
func (m *Memory) Delete(ctx context.Context, t demo.Thing) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, ok := m.things[t.Name]; ok && was.Revision != t.Revision {
		return demo.ErrChanged
	}
	delete(m.things, t.Name)
	return ctx.Err()
}

// List implements demo.Things.
func (m *Memory) List(ctx context.Context, cursor string) (page []demo.Thing, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.things {
		if name > cursor {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > MemoryPageSize {
		names = names[:MemoryPageSize]
		next = names[MemoryPageSize-1]
	}
	for _, name := range names {
		page = append(page, m.things[name])
	}
	return page, next, ctx.Err()
}
