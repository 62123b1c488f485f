package main

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/longshore/longshore/infra/outputs"
)

// What is said before a stack goes is what the next deployment takes.
func TestKeptSaysHowToGoOn(t *testing.T) {
	all := maps.Clone(said)
	all[outputs.Key] = "arn:aws:kms:eu-central-1:111122223333:key/k"
	for broker, more := range map[string]string{"identity-of-the-broker": " -c broker=identity-of-the-broker", "": ""} {
		all[outputs.Broker] = broker
		var out bytes.Buffer
		if err := kept("Other", all, &out); err != nil {
			t.Fatal(err)
		}
		want := `make deploy STACK=Other CONTEXT="-c table=records -c key=arn:aws:kms:eu-central-1:111122223333:key/k -c secret=secret-arn` + more + `"`
		if !strings.Contains(out.String(), want) {
			t.Errorf("it is not said how to go on:\n%s", out.String())
		}
	}
}
