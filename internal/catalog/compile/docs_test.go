package compile_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// The example in the documentation is a file that loads.
func TestDocumentedFile(t *testing.T) {
	text, err := os.ReadFile("../../../docs/offerings.md")
	expect.OK(t, err)
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	file, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("there is no example")
	}
	c, err := compile.Load(catalogtest.Providers("demo"),
		compile.Source{Name: "docs", FS: fstest.MapFS{"cache/offering.yaml": {Data: []byte(file)}}})
	expect.OK(t, err)
	o := c.Offerings()[0]
	if o.DashboardOf("i") != "https://cache.example.com/instances/i" || o.DashboardClient == nil || len(o.Plans) != 1 ||
		o.Plans[0].Schemas == nil || o.Plans[0].TypicalDuration != 120 {
		t.Errorf("%+v", o)
	}
}
