//go:build unix

package pgtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
)

// guarded runs a program in the shell's place, beside a guard that waits for a line
// in file 3, which says that the program has ended. At the file's end it ends the
// program and removes its folder. The other end of that file is open in the test
// process alone, so it ends with it, however it ends. The program is asked first:
// killed, it would leave memory behind that no process has.
const guarded = `
dir=$0
(read ended <&3 && exit
kill -CONT $$; kill -QUIT $$
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e "$dir/data/postmaster.pid" ] || break; sleep 0.1; done
kill -KILL $$; rm -rf "$dir") >/dev/null 2>&1 &
exec 3<&-
exec "$@"`

// launch starts a program under a guard. The channel is closed when it has ended.
func launch(program *exec.Cmd, dir, logPath string) (pid int, exited <-chan struct{}, err error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = log.Close() }()
	held, kept, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	c := exec.Command("/bin/sh", append([]string{"-c", guarded, dir}, program.Args...)...)
	c.Dir, c.Env, c.SysProcAttr, c.Stdout, c.Stderr = program.Dir, program.Env, program.SysProcAttr, log, log
	c.ExtraFiles = []*os.File{held} // the first is number 3
	err = c.Start()
	_ = held.Close()
	if err != nil {
		_ = kept.Close()
		return 0, nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = c.Wait() // how it ended is in the log
		_, _ = kept.WriteString("ended\n")
		_ = kept.Close()
		close(done)
	}()
	return c.Process.Pid, done, nil
}

// Stop ends the server as an operator would, and waits until it is gone. Stopping
// it again does nothing.
func (s *Server) Stop() {
	s.t.Helper()
	s.end(func(pid int) error { return pgserver.Stop(context.Background(), pid, stopGrace) })
}

// Kill ends the server's first process by SIGKILL, as if the machine had no memory
// left; the others end by themselves.
func (s *Server) Kill() {
	s.t.Helper()
	s.end(func(pid int) error {
		others := children(pid)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
		for _, one := range others {
			if err := pgserver.Gone(s.t.Context(), one); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Server) end(by func(pid int) error) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.exited:
		return
	default:
	}
	if err := by(s.cluster.PID()); err != nil {
		s.t.Fatalf("ending the server: %v", err)
	}
	<-s.exited
}

// Restart starts a server again that was stopped or killed, and stops it first
// where it runs. Its port stays.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	ctx, cancel := context.WithTimeout(s.t.Context(), startWait)
	defer cancel()
	if err := s.run(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// Freeze stops the server and all its sessions in their tracks, as a machine that
// hangs: connections are taken, and nothing answers.
func (s *Server) Freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

func (s *Server) signal(to syscall.Signal) {
	s.t.Helper()
	pid := s.cluster.PID()
	if pid == 0 {
		return // it does not run
	}
	for _, one := range append([]int{pid}, children(pid)...) {
		_ = syscall.Kill(one, to) // it may have ended meanwhile
	}
}

// children are the processes that a process has started.
func children(pid int) (found []int) {
	said, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return childrenByFiles(pid)
	}
	for line := range strings.Lines(string(said)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(fields[0]); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// childrenByFiles is for a Linux that has no ps.
func childrenByFiles(pid int) (found []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}
