//go:build unix

package valkeytest

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guarded runs the server in the shell's place, beside a guard that waits for a line
// in file 3, which says that the server has ended. At the file's end it kills the
// server and removes its folder. The other end of that file is open in the test
// process alone, so it ends with it, however it ends.
const guarded = `
dir=$1
(read ended <&3 && exit; kill -KILL $$; rm -rf "$dir") >/dev/null 2>&1 &
exec 3<&-
exec "$0" "$dir/valkey.conf"`

// launch starts the server in a process group of its own. The channel is closed
// when it has ended; end kills it, and leaves its folder.
func launch(path, dir, logPath string) (exited <-chan struct{}, end func(), err error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = log.Close() }()
	held, kept, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c := exec.Command("/bin/sh", "-c", guarded, path, dir)
	c.Dir, c.Stdout, c.Stderr = dir, log, log
	c.ExtraFiles = []*os.File{held} // the first is number 3
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = c.Start()
	_ = held.Close()
	if err != nil {
		_ = kept.Close()
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = c.Wait() // how it ended is in the log
		_, _ = kept.WriteString("ended\n")
		_ = kept.Close()
		close(done)
	}()
	return done, sync.OnceFunc(func() {
		_ = c.Process.Kill()
		<-done
	}), nil
}
