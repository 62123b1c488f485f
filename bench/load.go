package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/bench/wire"
)

// answerLimit bounds the wait for an answer.
const answerLimit = 10 * time.Second

// A client is one keep-alive connection. It does as little work of its own as possible: it shares
// the processors with the broker.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(address string) (*client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// send sends one request and checks the status of its answer. It returns the body if keep is set.
func (c *client) send(raw []byte, want int, keep bool) ([]byte, error) {
	if err := c.conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(raw); err != nil {
		return nil, err
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	var body []byte
	var size int64
	if keep || r.StatusCode != want {
		body, err = io.ReadAll(r.Body)
		size = int64(len(body))
	} else {
		size, err = io.Copy(io.Discard, r.Body)
	}
	switch {
	case err != nil:
		return nil, err
	case r.StatusCode != want:
		return nil, fmt.Errorf("status %d, want %d: %s", r.StatusCode, want, body)
	case size == 0:
		return nil, fmt.Errorf("status %d without a body", r.StatusCode)
	}
	return body, nil
}

// ask sends one request over a connection of its own.
func ask(address string, s wire.Shot) ([]byte, error) {
	c, err := dial(address)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.send(s.Bytes(), s.Want, true)
}

// A load returns the nth request of a client.
type load func(client, n int) wire.Shot

// loadResult is the result of a load.
type loadResult struct {
	perSecond   float64
	median, p99 time.Duration
}

// drive lets a number of clients send requests for some time, each its next request as soon as it
// has the last answer. Requests during the warm-up do not count.
func drive(address string, clients int, warm, measured time.Duration, l load) (loadResult, error) {
	begin := time.Now().Add(warm)
	end := begin.Add(measured)
	took := make([][]time.Duration, clients)
	errs := make([]error, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { took[i], errs[i] = driveOne(address, i, begin, end, l) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return loadResult{}, fmt.Errorf("sending to the broker: %w", err)
		}
	}
	sorted := slices.Concat(took...)
	if len(sorted) == 0 {
		return loadResult{}, fmt.Errorf("no answer within %v", measured)
	}
	slices.Sort(sorted)
	return loadResult{
		perSecond: float64(len(sorted)) / measured.Seconds(), median: quantile(sorted, 0.5), p99: quantile(sorted, 0.99),
	}, nil
}

func driveOne(address string, i int, begin, end time.Time, l load) ([]time.Duration, error) {
	c, err := dial(address)
	if err != nil {
		return nil, err
	}
	defer c.close()
	took := make([]time.Duration, 0, 1<<16)
	for n := 0; ; n++ {
		s := l(i, n)
		raw := s.Bytes()
		sent := time.Now()
		if !sent.Before(end) {
			return took, nil
		}
		if _, err := c.send(raw, s.Want, false); err != nil {
			return nil, fmt.Errorf("%s %s: %w", s.Method, s.Path, err)
		}
		if now := time.Now(); !sent.Before(begin) && !now.After(end) {
			took = append(took, now.Sub(sent))
		}
	}
}

// quantile returns a quantile of sorted values, by the nearest rank.
func quantile[T any](sorted []T, q float64) T {
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}
