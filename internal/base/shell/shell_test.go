package shell_test

import (
	"testing"

	"github.com/longshore/longshore/internal/base/shell"
	"github.com/longshore/longshore/internal/test/expect"
)

// A word is quoted only if it needs it.
func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		".longshore": ".longshore", "/srv/my-data_1": "/srv/my-data_1", "http://127.0.0.1:8080": "http://127.0.0.1:8080",
		"p@h,x+y%": "p@h,x+y%", "my data": "'my data'", "it's": `'it'\''s'`, "": "''", "~/data": "'~/data'", "$HOME": "'$HOME'",
		"http://[::1]:8080": "'http://[::1]:8080'", "a;b": "'a;b'", "ö": "'ö'",
	} {
		expect.Same(t, "the word", want, shell.Word(text))
	}
}
