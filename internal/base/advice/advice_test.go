package advice_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestError(t *testing.T) {
	for want, err := range map[string]*advice.Error{
		"--data is empty: name a folder": advice.For("--data", "is empty", "name a folder"),
		`data folder "d" cannot be read: allow it (file does not exist)`: {
			Name: `data folder "d"`, What: "cannot be read", Remedy: "allow it", Cause: fs.ErrNotExist,
		},
		"a/offering.yaml:3: no name; give one": {File: "a/offering.yaml", Line: 3, What: "no name", Remedy: "give one"},
		"a: the folder is empty; fill it":      {File: "a", What: "the folder is empty", Remedy: "fill it"},
	} {
		expect.Same(t, "the error", want, err.Error())
		if errors.Is(err, fs.ErrNotExist) != (err.Cause != nil) {
			t.Errorf("%q: its cause is not found, or invented", want)
		}
	}
}
