package valkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
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

// erase removes the keys of a pattern. They are gone when a whole look at all keys has met
// none of them; until then it is to be waited for.
func (s *server) erase(ctx context.Context, in provider.Instance, pattern string) (*provider.Status, error) {
	run, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	at, err := recall(in.State, in.Operation.ID, run)
	if err != nil {
		return nil, err
	}
	for range scansPerStep {
		keys, next, err := s.scan(ctx, at.Cursor, pattern)
		if err == nil && len(keys) > 0 {
			_, err = s.do(ctx, append([]string{"UNLINK"}, keys...)...)
		}
		if err != nil {
			return nil, err
		}
		at.Cursor, at.Found = next, at.Found+len(keys)
		if next != scanStart {
			continue
		}
		if at.Found == 0 {
			return nil, nil
		}
		at.Found = 0
	}
	data, err := json.Marshal(at)
	wait := hosted.Waiting("Deleting keys", time.Millisecond)
	wait.State = &provider.State{Format: passFormat, Data: data}
	return wait, err
}

// How much of the keys one step looks at, so that no command holds up others and
// no step lasts.
const (
	scansPerStep = 1000
	scanCount    = 1000
	scanStart    = "0" // also the cursor that follows on the end
)

// run is what the server calls itself until it restarts. A cursor says nothing to
// the next run.
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

// scan reads a part of the keys under an instance's prefix.
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
