// Command peer serves the broker that Longshore is compared with. It reads its catalog from a file,
// so that the process contains nothing of Longshore.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/longshore/longshore/bench/theirs"
	"github.com/longshore/longshore/bench/wire"
)

func main() {
	err := fmt.Errorf("usage: peer HOST:PORT CATALOG")
	if len(os.Args) == 3 {
		err = run(os.Args[1], os.Args[2])
	}
	fmt.Fprintln(os.Stderr, "peer:", err)
	os.Exit(1)
}

func run(listen, catalog string) error {
	raw, err := os.ReadFile(catalog)
	if err != nil {
		return err
	}
	h, err := theirs.New(raw, wire.Log(os.Stderr))
	if err != nil {
		return err
	}
	return wire.Serve(listen, func(l net.Listener) net.Listener { return l }, h)
}
