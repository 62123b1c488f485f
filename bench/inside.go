package main

import (
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/longshore/longshore/bench/wire"
)

// insideResult is the cost of one request inside the handler.
type insideResult struct {
	nanoseconds, allocations, bytes float64
}

// inside calls a handler in batches until it has worked for long enough. Requests are made before
// the clock runs, and answers are discarded, so that only the handler's work counts.
func inside(h http.Handler, batch int, long time.Duration, l load) (insideResult, error) {
	w := &sink{header: http.Header{}}
	requests := make([]*http.Request, batch)
	var worked time.Duration
	var objects, bytes uint64
	var before, after runtime.MemStats
	n := 0
	for first := true; first || worked < long; first = false {
		var want int
		for i := range requests {
			s := l(0, n)
			n++
			var err error
			if requests[i], err = s.Request(); err != nil {
				return insideResult{}, err
			}
			want = s.Want
		}
		runtime.ReadMemStats(&before)
		began := time.Now()
		for _, r := range requests {
			w.reset()
			h.ServeHTTP(w, r)
			if w.status != want || w.size == 0 {
				return insideResult{}, fmt.Errorf("%s %s: status %d with %d bytes, want %d", r.Method, r.URL,
					w.status, w.size, want)
			}
		}
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if first { // the first batch warms up
			n, worked = batch, 0
			continue
		}
		worked += took
		objects += after.Mallocs - before.Mallocs
		bytes += after.TotalAlloc - before.TotalAlloc
	}
	counted := float64(n - batch)
	return insideResult{
		nanoseconds: float64(worked.Nanoseconds()) / counted, allocations: float64(objects) / counted,
		bytes: float64(bytes) / counted,
	}, nil
}

// A sink is a ResponseWriter that keeps only the status and the length.
type sink struct {
	header http.Header
	status int
	size   int
}

func (s *sink) reset() {
	clear(s.header)
	s.status, s.size = 0, 0
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
}

func (s *sink) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.size += len(p)
	return len(p), nil
}

// answer calls a handler once and returns the body.
func answer(h http.Handler, s wire.Shot) ([]byte, error) {
	r, err := s.Request()
	if err != nil {
		return nil, err
	}
	w := &keeper{sink: sink{header: http.Header{}}}
	h.ServeHTTP(w, r)
	if w.status != s.Want {
		return nil, fmt.Errorf("%s %s: status %d, want %d: %s", s.Method, s.Path, w.status, s.Want, w.body)
	}
	return w.body, nil
}

// A keeper is a sink that also keeps the body.
type keeper struct {
	sink
	body []byte
}

func (k *keeper) Write(p []byte) (int, error) {
	k.body = append(k.body, p...)
	return k.sink.Write(p)
}
