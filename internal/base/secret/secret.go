// Package secret keeps secrets out of logs and messages: its types are never shown. Their JSON has the values:
// code that encodes one means to.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// shown stands where a secret would.
const shown = "[redacted]"

// Holder is embedded in a struct with secrets: then no verb formats any of the struct, and no log shows it.
//
// Package fmt redacts a struct inside another one only if its field is exported, and log/slog's JSON asks only the
// outermost struct. So each struct that can be logged embeds Holder, not only the one with the secret.
type Holder struct{}

// Format implements fmt.Formatter.
func (Holder) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue implements slog.LogValuer.
func (Holder) LogValue() slog.Value { return slog.StringValue(shown) }

// Bytes are secret. Their JSON is that of []byte. A struct with some embeds Holder, too: for a verb that does not
// fit, package fmt shows the members as they are.
type Bytes []byte

// Format implements fmt.Formatter.
func (Bytes) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue implements slog.LogValuer.
func (Bytes) LogValue() slog.Value { return slog.StringValue(shown) }
