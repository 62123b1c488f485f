package mariadbtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// The login that tests have is the one that the guide makes.
func TestGuide(t *testing.T) {
	path, err := testserver.Installed("docs/mariadb.md")
	expect.OK(t, err)
	page, err := os.ReadFile(path)
	expect.OK(t, err)
	if !strings.Contains(string(page), "```sql\n"+mariadbtest.Guide()+"```") {
		t.Errorf("docs/mariadb.md does not have the statements that the tests' login is made by:\n%s", mariadbtest.Guide())
	}
}
