package main

import (
	"bytes"
	"testing"

	"github.com/longshore/longshore/internal/operator"
)

// The table says what each instance is at, and what only the operator can publish.
func TestUpgradesAreListed(t *testing.T) {
	l := table[operator.Upgrade]{head: "PLATFORM\tINSTANCE\tSTATE\tSERVICE/PLAN\tIS AT\tPLAN IS AT", row: upgradeRow}
	var out bytes.Buffer
	if err := l.print(func(yield func(operator.Upgrade, error) bool) {
		_ = yield(operator.Upgrade{Platform: "cf", Instance: "i", State: "ready", Service: "s3", Plan: "small", Recorded: "1.0.0",
			Current: "1.1.0"}, nil) &&
			yield(operator.Upgrade{Platform: "cf", Instance: "j", State: "ready", Service: "s3", Plan: "small",
				Unpublished: true}, nil)
	}, false, &out); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "IS AT", "cf        i         ready  s3/small      1.0.0  1.1.0", "s3/small      -      -, edited since")
}
