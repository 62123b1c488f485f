package catalog_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
)

// A compiled catalog is refused whole if it is of another version or damaged,
// before any request depends on it; the same offerings give the same bytes.
func TestOpen(t *testing.T) {
	c, err := load(map[string]string{"a/offering.yaml": sound})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := catalog.Encode(c.Offerings(), nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := catalog.Open(compiled)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := catalog.Encode(opened.Offerings(), nil); err != nil || !bytes.Equal(again, compiled) {
		t.Errorf("it changes when it is read and written: %v\n%s\n%s", err, compiled, again)
	}

	for about, damaged := range map[string][]byte{
		"version": bytes.Replace(compiled, []byte("catalog 1"), []byte("catalog 2"), 1),
		"damaged": bytes.Replace(compiled, []byte("The small one"), []byte("The smell one"), 1),
	} {
		if _, err := catalog.Open(damaged); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("want an error about %q, got %v", about, err)
		}
	}
	if _, err := catalog.Open(compiled[:len(compiled)-1]); err == nil {
		t.Error("a catalog that was cut off is opened")
	}
}
