package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/bench/wire"
)

// A process is a running broker. Its log is discarded.
type process struct {
	cmd     *exec.Cmd
	address string
	ended   chan struct{}
	// started is the time from just before the process was started to its first answer, and
	// resident its memory at that moment, in bytes.
	started  time.Duration
	resident float64
}

const (
	startLimit = 20 * time.Second
	// startPause is the interval at which a starting broker is asked.
	startPause = 200 * time.Microsecond
)

// start runs a broker and waits for its first answer. The function arguments gets the address to listen on.
func start(path string, arguments func(address string) []string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	p := &process{cmd: exec.Command(path, arguments(address)...), address: address, ended: make(chan struct{})}
	p.cmd.Env = []string{"LONGSHORE_USERNAME=" + wire.Username, "LONGSHORE_PASSWORD=" + wire.Password}
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd.Stderr = log
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a broker: %w", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	for {
		if _, err = ask(address, wire.Catalog()); err == nil {
			break
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s ended at its start: %v", path, p.cmd.ProcessState)
		case <-time.After(startPause):
		}
		if time.Since(began) > startLimit {
			p.kill()
			return nil, fmt.Errorf("%s does not answer: %w", path, err)
		}
	}
	p.started = time.Since(began)
	if p.resident, err = resident(p.cmd.Process.Pid); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// kill kills the process and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// resident returns a process's resident memory as Linux counts it, in bytes.
func resident(pid int) (float64, error) { return memoryAs(pid, "VmRSS") }

// memoryAs returns a process's memory by one of the counts of Linux, in bytes.
func memoryAs(pid int, counted string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(raw) {
		name, value, _ := strings.Cut(string(line), ":")
		if name != counted {
			continue
		}
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		return kilobytes * 1024, err
	}
	return 0, fmt.Errorf("process %d has no %s", pid, counted)
}

// child waits for a child of a process to end, and returns the most memory of its own that the
// child had, in bytes, without the file that it reads; 0 if there is no child.
func child(pid int) (most float64) {
	for {
		var running []byte
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, t := range threads {
			ids, _ := os.ReadFile(t) // a thread may have ended
			running = append(running, ids...)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(running)), " ")
		id, err := strconv.Atoi(first)
		if err != nil {
			return most
		}
		if now, err := memoryAs(id, "RssAnon"); err == nil {
			most = max(most, now)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
