// Command alone serves Longshore's handler over a store in memory, for the benchmark: nothing is
// written to disk, and nothing drives the operations.
package main

import (
	"fmt"
	"os"

	"github.com/longshore/longshore/bench/ours"
	"github.com/longshore/longshore/bench/wire"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/test/memory"
)

func main() {
	err := fmt.Errorf("usage: alone HOST:PORT")
	if len(os.Args) == 2 {
		err = run(os.Args[1])
	}
	fmt.Fprintln(os.Stderr, "alone:", err)
	os.Exit(1)
}

func run(listen string) error {
	h, err := ours.New(memory.New(), wire.Log(os.Stderr))
	if err != nil {
		return err
	}
	return wire.Serve(listen, osb.Listener, h)
}
