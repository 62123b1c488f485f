package valkey

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// passFormat is the version of a pass as it is remembered.
const passFormat = 1

// A pass is how far one look at all keys of the server has come. It is of one
// operation and of one run of the server: to others, its cursor says nothing.
type pass struct {
	Operation string `json:"operation"`
	Run       string `json:"run"`
	Cursor    string `json:"cursor"`
	// Found counts the keys of the instance that it has met.
	Found int `json:"found,omitempty"`
}

// recall is the pass to go on with.
func recall(remembered provider.State, operation, run string) (pass, error) {
	anew := pass{Operation: operation, Run: run, Cursor: scanStart}
	at := anew
	switch remembered.Format {
	case 0:
	case passFormat:
		if err := json.Unmarshal(remembered.Data, &at); err != nil {
			return at, fmt.Errorf("reading how far a deletion has come: %w", err)
		}
	default: // of a later program: a deploy is under way
		return at, fmt.Errorf("state has format %d, and this program knows %d", remembered.Format, passFormat)
	}
	if at.Operation != operation || at.Run != run {
		return anew, nil
	}
	return at, nil
}

// erase removes an instance: its users first, so that nobody writes any more,
// then its keys, and its label last, by which all of it is found. What is retained stays,
// and what it has taken half is retained again.
func (s *server) erase(ctx context.Context, in provider.Instance) (provider.Status, error) {
	tags := provider.TagsOf(in)
	found, err := s.find(ctx, beginning(tags), tags)
	if err != nil {
		return provider.Status{}, err
	}
	for _, u := range found {
		if u.label.Half {
			if err := s.giveBack(ctx, u); err != nil {
				return provider.Status{}, err
			}
		}
	}
	users, err := s.users(ctx, bindings(tags))
	if err == nil {
		err = s.remove(ctx, users...)
	}
	if err != nil {
		return provider.Status{}, err
	}
	stays, err := s.users(ctx, retainedBeginning(tags))
	if err != nil {
		return provider.Status{}, err
	}
	var homes, keepers []string // of keys that were another instance's
	for _, u := range found {
		if was := u.label.Was; was != nil && !u.label.Half && !slices.Contains(stays, retainedName(u.label.Tags)) { // else they are retained
			homes, keepers = append(homes, u.label.Home), append(keepers, keeper(u.label.Home), retainedName(*was))
		}
	}
	for i, kept := range stays {
		stays[i] = homeOf(kept)
	}
	begins, match := "{"+instanceID(tags)+"-", pattern(tags)
	if len(homes) > 0 {
		match = "{" + namePrefix + "*"
	}
	st, err := s.empty(ctx, in.State, in.Operation.ID, match, func(key string) bool {
		home, _, _ := strings.Cut(strings.TrimPrefix(key, "{"), "}")
		return slices.Contains(homes, home) || strings.HasPrefix(key, begins) && !slices.Contains(stays, home)
	})
	if err != nil || !st.Done {
		return st, err
	}
	if err := s.remove(ctx, keepers...); err != nil {
		return provider.Status{}, err
	}
	state := st.State
	st, err = s.forget(ctx, tags)
	st.State = state
	return st, err
}

// empty removes the keys of a pattern that go. They are gone when a whole pass has met
// none of them; until then it is not done.
func (s *server) empty(
	ctx context.Context, remembered provider.State, operation, pattern string, goes func(string) bool,
) (provider.Status, error) {
	run, err := s.run(ctx)
	if err != nil {
		return provider.Status{}, err
	}
	at, err := recall(remembered, operation, run)
	if err != nil {
		return provider.Status{}, err
	}
	for range scansPerStep {
		keys, next, err := s.scan(ctx, at.Cursor, pattern)
		keys = slices.DeleteFunc(keys, func(key string) bool { return !goes(key) })
		if err == nil && len(keys) > 0 {
			err = s.unlink(ctx, keys)
		}
		if err != nil {
			return provider.Status{}, err
		}
		at.Cursor, at.Found = next, at.Found+len(keys)
		if next != scanStart {
			continue
		}
		if at.Found == 0 {
			return provider.Status{Done: true, Percent: 100, State: &provider.State{}}, nil
		}
		at.Found = 0
	}
	data, err := json.Marshal(at)
	return provider.Status{
		Percent: 50, Description: "Deleting keys", After: time.Millisecond, State: &provider.State{Format: passFormat, Data: data},
	}, err
}

// forget removes the users of these ids, whatever their incarnation. The server ends
// their sessions: those that listen, that wait for a key and that are in a transaction
// too. It is done when they are seen to be gone and the server has kept that: one that
// died in between is followed by one that keeps it.
func (s *server) forget(ctx context.Context, ids provider.Tags) (provider.Status, error) {
	found, err := s.find(ctx, beginning(ids), ids)
	if err != nil {
		return provider.Status{}, err
	}
	if len(found) > 0 {
		_, names := split(found, "")
		if err := s.remove(ctx, names...); err != nil {
			return provider.Status{}, err
		}
		left, err := s.users(ctx, beginning(ids))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("target %q still has a user that was removed", s.target)
		}
		if err != nil {
			return provider.Status{}, err
		}
	}
	return done(s.save(ctx))
}
