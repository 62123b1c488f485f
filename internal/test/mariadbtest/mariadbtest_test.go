package mariadbtest_test

import (
	"os"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// The login that tests have is the one that the guide makes.
func TestGuide(t *testing.T) {
	page := expect.Get(os.ReadFile(expect.Get(testserver.Installed("docs/mariadb.md"))(t)))(t)
	expect.Says(t, "docs/mariadb.md, of the statements that the tests' login is made by", string(page),
		"```sql\n"+mariadbtest.Guide()+"```")
}
