package embedded

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/testkit"
)

// A broker that runs notices damage that no request has met, says what to do, and then
// changes nothing.
func TestDamageStopsChanges(t *testing.T) {
	dir := withInstances(t, "one")
	path := filepath.Join(dir, "longshore.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte(`"state":"ready"`), []byte(`"state":"reedy"`))
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	e, err := Open(Settings{Data: dir, Getenv: func(string) string { return "" }}, testkit.Demo(),
		slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	records := ledger.New(e.folder.Records, app.NewID)
	change := ledger.PutReport(ledger.Report{Started: app.Now(), Ended: app.Now()}, "1")
	if err := records.Commit(t.Context(), change); err != nil {
		t.Errorf("before the check: %v", err)
	}
	e.CheckRecords(t.Context())
	for _, want := range []string{
		"level=ERROR", "nothing is changed any more", "restore the folder from a backup", "does not match its checksum",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not logged: %s", want, log.String())
		}
	}
	change = ledger.PutReport(ledger.Report{Started: app.Now(), Ended: app.Now()}, "2")
	if err := records.Commit(t.Context(), change); err == nil {
		t.Error("a change was made after the check")
	}
}
