// Command emulator runs an emulated AWS that serves plain HTTP, and has its functions
// reach it as over TLS: AWS services that ship refuse everything else, the proofs of new
// keys too.
//
//	emulator ADDRESS COMMAND [ARGUMENT]...
//
// The command serves at ADDRESS. Its AWS_ENDPOINT_URL, which functions inherit, is the
// gateway's.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/longshore/longshore/internal/testserver"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: emulator ADDRESS COMMAND [ARGUMENT]...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]...); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
}

// run ends when the command does: who ends both by a signal to their group waits for
// the command by this process.
func run(address, command string, args ...string) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	gateway, err := testserver.OverTLS(address)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", testserver.Loopback+":0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, gateway) }() // it fails with the process alone
	c := exec.Command(command, args...)
	c.Env = append(os.Environ(), "AWS_ENDPOINT_URL=http://"+listener.Addr().String())
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}
