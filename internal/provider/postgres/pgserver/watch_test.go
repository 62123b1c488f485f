//go:build unix

package pgserver

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// The id of a server that has ended may become another process's, which would be taken for the server, and be ended in its place.
func TestAServerThatHasEndedIsForgotten(t *testing.T) {
	const beyond = 1 << 30 // no process of any system has this id
	lost := filepath.Join(t.TempDir(), "lost", "data")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := &Server{cluster: Cluster{Data: lost}, log: slog.New(slog.DiscardHandler), stop: stop, watched: make(chan struct{})}
		s.pid.Store(beyond)
		go s.watch(ctx)
		time.Sleep(watchEvery)
		synctest.Wait()
		if pid := s.pid.Load(); pid != 0 {
			t.Errorf("the server is still process %d", pid)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
