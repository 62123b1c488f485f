package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A troubled console answers everything with a fault.
type troubled struct{ Console }

func (troubled) Inventory(context.Context) (ledger.Inventory, error) {
	return ledger.Inventory{}, errors.New("a record is damaged")
}

func (troubled) List(context.Context, operator.Query, string) ([]operator.Row, string, error) {
	return []operator.Row{{Instance: "one"}}, "", errors.New("a record is damaged")
}

// A broker that answers with a fault runs: it is asked, and what it says is told beside
// what it gave.
func TestABrokerInTroubleRuns(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(dir, false) // as the running broker does
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if newRemote(filepath.Join(dir, fileControl)).answers(t.Context()) {
		t.Error("nobody listens, and a broker runs")
	}
	control := openControl(dir, troubled{}, func(context.Context, Wish, io.Writer) error { return nil }, slog.New(slog.DiscardHandler))
	defer control.close()
	console, closing, err := FolderConsole(t.Context(), dir, demoCatalog, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	rows, _, err := console.List(t.Context(), operator.Query{What: operator.Instances}, "")
	if len(rows) != 1 || err == nil || err.Error() != "a record is damaged" {
		t.Errorf("%+v %v", rows, err)
	}
}
