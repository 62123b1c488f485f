// Package secret keeps what is secret out of logs and messages: it owns how such
// values are shown, which is not at all. How they are stored is left to their
// JSON, which is that of the values themselves: who encodes one means to.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// shown stands where a secret would.
const shown = "[redacted]"

// Holder is embedded in a struct that holds secrets: then nothing of the struct
// is formatted, whatever the verb, or logged. It has no members of its own.
//
// A struct inside another one is redacted by package fmt only if its field is
// exported; and log/slog's JSON asks only the outermost. So each struct that can
// be logged embeds it, not only the one with the secret.
type Holder struct{}

// Format implements fmt.Formatter.
func (Holder) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue implements slog.LogValuer.
func (Holder) LogValue() slog.Value { return slog.StringValue(shown) }

// Bytes are secret. Their JSON is that of []byte. A struct that has some embeds
// Holder too: of what no verb fits, package fmt shows the members as they are.
type Bytes []byte

// Format implements fmt.Formatter.
func (Bytes) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue implements slog.LogValuer.
func (Bytes) LogValue() slog.Value { return slog.StringValue(shown) }
