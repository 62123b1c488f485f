//go:build unix

package testserver

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guarded runs a program in the shell's place, beside a guard that reads file
// 3 to its end and then kills the whole group and removes its folder. The other
// end of that file is open in the test process alone, so it ends with it,
// however it ends.
const guarded = `
(cat <&3; kill -KILL $$; rm -rf "$TMPDIR"; kill -KILL 0) >/dev/null 2>&1 &
exec 3<&-
exec "$0" "$@"`

// lifeline is never closed but by the end of this process.
var lifeline struct {
	sync.Mutex // tests start servers side by side
	kept       []*os.File
}

// Launch starts the program in the folder that TMPDIR of its environment names, with
// no other environment, and with its output in a file. The channel is closed when it
// has ended.
func Launch(path, dir, logPath string, env []string, args ...string) (exited <-chan struct{}, err error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	held, kept, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	lifeline.Lock()
	lifeline.kept = append(lifeline.kept, kept)
	lifeline.Unlock()
	c := exec.Command("/bin/sh", append([]string{"-c", guarded, path}, args...)...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, env, log, log
	c.ExtraFiles = []*os.File{held} // the first is number 3
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = c.Start()
	_ = held.Close()
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = c.Wait() // how it ended is in the log
		close(done)
	}()
	return done, nil
}
