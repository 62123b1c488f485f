package valkey

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// passFormat is the number of the format in which the state has a pass.
const passFormat = 1

// A pass is a walk over all keys of the server. Its cursor is valid within one operation and one
// run of the server.
type pass struct {
	Operation string `json:"operation"`
	Run       string `json:"run"`
	Cursor    string `json:"cursor"`
	// Found counts the keys of the instance that the pass has found.
	Found int `json:"found,omitempty"`
}

// erase removes the keys that match a pattern. It returns nil only when a whole pass over all keys has found
// no such key; until then it returns a hosted.Later.
func (s *server) erase(ctx context.Context, in provider.Instance, pattern string) error {
	run, err := s.run(ctx)
	if err != nil {
		return err
	}
	anew := pass{Operation: in.Operation.ID, Run: run, Cursor: scanStart}
	at := anew
	if err := in.State.Read(passFormat, &at); err != nil {
		return err
	}
	if at.Operation != anew.Operation || at.Run != run { // the cursor of another operation or run is worth nothing
		at = anew
	}
	long, cancel := context.WithTimeout(ctx, eraseFor)
	defer cancel()
	for long.Err() == nil {
		keys, next, err := s.scan(ctx, at.Cursor, pattern)
		if err == nil && len(keys) > 0 {
			_, err = s.do(ctx, append([]string{"UNLINK"}, keys...)...)
		}
		if err != nil {
			return err
		}
		at.Cursor, at.Found = next, at.Found+len(keys)
		if next != scanStart {
			continue
		}
		if at.Found == 0 {
			return nil
		}
		at.Found = 0
	}
	later := hosted.Wait("Deleting keys", time.Millisecond)
	later.Status.State = provider.StateOf(passFormat, at)
	return later
}

const (
	// scanCount keeps a scan from blocking other clients.
	scanCount = 1000
	scanStart = "0" // also the cursor after the last key
	// eraseFor is how long a step goes on. Hazard: a step that runs out of its time leaves no state, and the next one
	// begins anew, so a deletion at a slow server would never end.
	eraseFor = 4 * time.Second
)

// run returns the id of the server's run, which changes with each restart.
func (s *server) run(ctx context.Context) (string, error) {
	got, err := s.do(ctx, "INFO", "server")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text(got)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id, nil
		}
	}
	return "", errors.New("it does not say which run of the server answers")
}

// scan returns the next part of the keys that match a pattern, and the cursor of the part after it.
func (s *server) scan(ctx context.Context, cursor, pattern string) (keys []string, next string, err error) {
	got, err := s.do(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", strconv.Itoa(scanCount))
	if err != nil {
		return nil, "", err
	}
	parts, err := got.ToArray()
	if err != nil || len(parts) != 2 {
		return nil, "", fmt.Errorf("reading the keys: an answer of %d parts: %w", len(parts), err)
	}
	keys, err = parts[1].AsStrSlice()
	return keys, text(parts[0]), err
}
