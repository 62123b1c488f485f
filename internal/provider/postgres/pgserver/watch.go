package pgserver

import (
	"context"

	"github.com/longshore/longshore/internal/base/waiting"
)

// watch starts the server again whenever it has ended, admits the broker once a long recovery has ended, and removes old
// logs, until the context is done.
func (s *Server) watch(ctx context.Context) {
	defer close(s.watched)
	backoff, lived := 1, true
	for n := 0; waiting.For(ctx, watchEvery) == nil; n++ {
		if n%60 == 0 {
			prune(s.cluster.beside(dirLog), s.log)
		}
		pid := int(s.pid.Load())
		lives := pid != 0 && alive(pid)
		if !lives {
			s.pid.Store(0) // the system may give the id to another process
		}
		if lives != lived {
			backoff, lived = 1, lives
		}
		if n%backoff != 0 {
			continue
		}
		do, failed := s.admit, "the broker cannot make its login on the PostgreSQL server; this is tried again"
		if !lives {
			do, failed = s.again, "the PostgreSQL server cannot be started; this is tried again"
		}
		if err := do(ctx); err == nil || recovers(err) {
			backoff = 1
		} else if ctx.Err() == nil {
			backoff = min(2*backoff, mostBackoff)
			s.log.Error(failed, "error", err)
		}
	}
}

// again starts a server that has ended.
func (s *Server) again(ctx context.Context) error {
	s.log.Error("the PostgreSQL server has ended by itself: it is started again", "log", s.cluster.beside(dirLog))
	return s.start(ctx, startWait)
}
