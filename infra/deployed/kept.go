package main

import (
	"fmt"
	"io"

	"github.com/longshore/longshore/infra/outputs"
)

// kept says what outlives the stack, and how another one goes on with it: the
// stack's outputs go with the stack.
func kept(stack string, said map[string]string, out io.Writer) error {
	broker := ""
	if id := said[outputs.Broker]; id != "" { // a stack of an earlier version has none
		broker = " -c broker=" + id
	}
	_, err := fmt.Fprintf(out, `What stays when stack %[1]s is gone: its table, the key of that, and the secret that the
platforms log in with. A stack that goes on with them knows every instance and every platform again:

  make deploy STACK=%[1]s CONTEXT="-c table=%[2]s -c key=%[3]s -c secret=%[4]s%[5]s"

`, stack, said[outputs.Table], said[outputs.Key], said[outputs.Secret], broker)
	return err
}
