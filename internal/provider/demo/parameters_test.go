package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/provider/demo"
)

var (
	errParameterExists = errors.New("ParameterAlreadyExists")
	errNoParameter     = errors.New("ParameterNotFound")
	errTooLarge        = errors.New("ValidationException: the value is over 4096 bytes")
)

// store is a fake of AWS SSM's parameters, with what it refuses: it has no
// conditional overwrite and no conditional delete, holds 4 KB a value, and
// lists ten a page.
type store struct {
	mu         sync.Mutex
	parameters map[string]parameter
}

type parameter struct {
	value   string
	version int
}

func (s *store) put(name, value string, overwrite bool) (version int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.parameters[name]
	switch {
	case len(value) > 4096:
		return 0, errTooLarge
	case ok && !overwrite:
		return 0, errParameterExists
	}
	s.parameters[name] = parameter{value, old.version + 1}
	return old.version + 1, nil
}

func (s *store) get(name string) (parameter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.parameters[name]
	if !ok {
		return parameter{}, errNoParameter
	}
	return p, nil
}

func (s *store) delete(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.parameters[name]; !ok {
		return errNoParameter
	}
	delete(s.parameters, name)
	return nil
}

func (s *store) byPath(token string) (values []parameter, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.parameters)), func(n string) bool { return n <= token })
	if len(names) > parametersPage {
		names = names[:parametersPage]
		next = names[parametersPage-1]
	}
	for _, n := range names {
		values = append(values, s.parameters[n])
	}
	return values, next
}

const parametersPage = 10

// parameters is the least that can be built over such a store: conditions are
// looked at before the write, and what the answer tells after it.
type parameters struct{ s *store }

var _ demo.Things = parameters{}

func (p parameters) Create(_ context.Context, t demo.Thing) error {
	_, err := p.put(t, false)
	if errors.Is(err, errParameterExists) {
		return demo.ErrExists
	}
	return err
}

func (p parameters) Get(_ context.Context, name string) (demo.Thing, error) {
	kept, err := p.s.get(name)
	if errors.Is(err, errNoParameter) {
		return demo.Thing{}, demo.ErrNotFound
	}
	if err != nil {
		return demo.Thing{}, err
	}
	return thingOf(kept)
}

func (p parameters) Replace(ctx context.Context, t demo.Thing) error {
	if err := p.unchanged(ctx, t); err != nil {
		return err
	}
	version, err := p.put(t, true)
	if err != nil {
		return err
	}
	if version == 1 {
		// It was gone, and is now made again: take it back.
		if err := p.s.delete(t.Name); err != nil && !errors.Is(err, errNoParameter) {
			return err
		}
		return demo.ErrChanged
	}
	before, _, _ := strings.Cut(t.Revision, " ")
	if before != strconv.Itoa(version-1) {
		return demo.ErrChanged
	}
	return nil
}

func (p parameters) Delete(ctx context.Context, t demo.Thing) error {
	err := p.unchanged(ctx, t)
	if errors.Is(err, demo.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.s.delete(t.Name); err != nil && !errors.Is(err, errNoParameter) {
		return err
	}
	return nil
}

func (p parameters) List(_ context.Context, cursor string) ([]demo.Thing, string, error) {
	kept, next := p.s.byPath(cursor)
	var page []demo.Thing
	for _, k := range kept {
		t, err := thingOf(k)
		if err != nil {
			return nil, "", err
		}
		page = append(page, t)
	}
	return page, next, nil
}

// unchanged looks just before a write. It gives ErrChanged also for what is
// gone, and then ErrNotFound too.
func (p parameters) unchanged(ctx context.Context, t demo.Thing) error {
	now, err := p.Get(ctx, t.Name)
	if errors.Is(err, demo.ErrNotFound) {
		return fmt.Errorf("%w: %w", demo.ErrChanged, err)
	}
	if err == nil && now.Revision != t.Revision {
		err = demo.ErrChanged
	}
	return err
}

func (p parameters) put(t demo.Thing, overwrite bool) (int, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return 0, err
	}
	return p.s.put(t.Name, string(body), overwrite)
}

func thingOf(p parameter) (demo.Thing, error) {
	var t demo.Thing
	err := json.Unmarshal([]byte(p.value), &t)
	// Versions begin again with what is made again, so they are not enough.
	t.Revision = strconv.Itoa(p.version) + " " + p.value
	return t, err
}

// The demo asks of its things nothing that SSM cannot give.
func TestConformanceOverParameters(t *testing.T) {
	conforms(t, parametersPage, func(*testing.T) func(testing.TB) demo.Things {
		s := &store{parameters: map[string]parameter{}}
		return func(testing.TB) demo.Things { return parameters{s} }
	})
}
