package valkey

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	made, err := s.own(ctx, tags)
	if err == nil && made.label.Half {
		err = s.giveBack(ctx, made)
		made = user{}
	}
	if err != nil {
		return provider.Status{}, err
	}
	users, err := s.users(ctx, bindings(tags))
	if err == nil {
		err = s.remove(ctx, users...)
	}
	if err != nil {
		return provider.Status{}, err
	}
	kept, err := s.retained(ctx, tags)
	switch {
	case err != nil:
		return provider.Status{}, err
	case kept.exists: // its keys
		return s.forget(ctx, tags)
	}
	home := cmp.Or(made.label.Home, instanceID(tags)) // where the keys were another instance's, and its keepers
	var keepers []string
	if was := made.label.Was; was != nil {
		keepers = []string{keeper(home), retainedName(*was)}
	}
	st, err := s.empty(ctx, in.State, in.Operation.ID, "{"+home+"}:*")
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

// empty removes the keys of a pattern. They are gone when a whole pass has met
// none of them; until then it is not done.
func (s *server) empty(
	ctx context.Context, remembered provider.State, operation, pattern string,
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

// forget removes the user of these tags. The server ends its sessions: those that
// listen, that wait for a key and that are in a transaction too. It is done when the
// user is seen to be gone and the server has kept that: one that died in between is
// followed by one that keeps it.
func (s *server) forget(ctx context.Context, t provider.Tags) (provider.Status, error) {
	u, err := s.own(ctx, t)
	if err != nil {
		return provider.Status{}, err
	}
	if u.exists {
		if err := s.remove(ctx, u.name); err != nil {
			return provider.Status{}, err
		}
		left, err := s.user(ctx, u.name)
		if err == nil && left.exists {
			err = fmt.Errorf("target %q still has a user that was removed", s.target)
		}
		if err != nil {
			return provider.Status{}, err
		}
	}
	return done(s.save(ctx))
}
