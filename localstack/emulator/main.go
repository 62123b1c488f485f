// Command emulator runs an emulated AWS that serves plain HTTP, and has its functions
// reach it as over TLS: AWS services that ship refuse everything else, the proofs of new
// keys too.
//
//	emulator ADDRESS FILE COMMAND [ARGUMENT]...
//
// The command serves at ADDRESS. Its AWS_ENDPOINT_URL, which functions inherit, is the
// gateway's, which FILE has for others.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/longshore/longshore/internal/test/testserver"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: emulator ADDRESS FILE COMMAND [ARGUMENT]...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]...); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
}

// run ends when the command does: who ends both by a signal to their group waits for
// the command by this process.
func run(address, file, command string, args ...string) error {
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
	url := "http://" + listener.Addr().String()
	if err := os.WriteFile(file, []byte(url+"\n"), 0o644); err != nil {
		return err
	}
	c := exec.Command(command, args...)
	c.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+url)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}
