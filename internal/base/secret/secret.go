// Package secret keeps secrets out of logs and messages: values of its types are never shown.
// Only their JSON holds the values, since code that encodes a secret does so on purpose.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// shown replaces a secret.
const shown = "[redacted]"

// Holder is embedded in structs that hold secrets: no format verb then shows any part of the
// struct, and neither does any log.
//
// Package fmt redacts a struct inside another one only if its field is exported, and log/slog's
// JSON asks only the outermost struct. So each struct that can be logged embeds Holder, not
// only the struct with the secret.
type Holder struct{}

// Format implements fmt.Formatter.
func (Holder) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue implements slog.LogValuer.
func (Holder) LogValue() slog.Value { return slog.StringValue(shown) }

// Bytes are secret. Their JSON is that of []byte. A struct with such members embeds Holder too:
// for a verb that does not fit, package fmt shows the members as they are.
type Bytes []byte

// Format implements fmt.Formatter.
func (Bytes) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue implements slog.LogValuer.
func (Bytes) LogValue() slog.Value { return slog.StringValue(shown) }
