package folder_test

import (
	"os"
	"testing"

	"github.com/longshore/longshore/internal/records/store/bolt"
)

// A check of records starts the tests' program again.
func TestMain(m *testing.M) {
	bolt.BeChecker()
	os.Exit(m.Run())
}
