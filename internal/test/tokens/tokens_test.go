package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// Packages that only tests import stand below internal/test, so that a floor shows the product
// alone.
func TestFloorsAreOfProduct(t *testing.T) {
	c, err := countIn("../../..")
	expect.OK(t, err)
	for _, path := range c.suites {
		if path != "internal" && !strings.HasPrefix(path, "internal/test/") && !strings.HasPrefix(path, "localstack/") {
			t.Errorf("only tests import %q: move it to internal/test", path)
		}
	}
	if !slices.Contains(c.suites, "internal/test/tokens") || c.folders["internal/broker"] == 0 || c.folders["infra"] == 0 ||
		c.apart["kit"] == 0 || c.apart["bench"] == 0 {
		t.Errorf("%+v: the test proves nothing", c)
	}
}
