package embedded

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/operator/folder"
)

// Everything that is asked of an absent provider waits: nothing is taken for done.
func TestAllThatIsAskedOfAnAbsentProviderWaits(t *testing.T) {
	why := errors.New("no server")
	w := wired.Of(absent{why})
	if w.Quarantiner == nil {
		t.Error("a thing is taken for locked")
	} else if !errors.Is(w.Quarantiner.Quarantine(t.Context(), provider.Holding{}), why) ||
		!errors.Is(w.Quarantiner.Release(t.Context(), provider.Holding{}), why) {
		t.Error("its quarantine does not say why it waits")
	}
	if w.Adopter == nil {
		t.Error("the operator is told of another version of the program")
	} else if err := w.Adopter.Adopt(t.Context(), provider.Holding{}, provider.Tags{}); !errors.Is(err, why) {
		t.Errorf("its adoption says %v", err)
	}
}

// Where one provider cannot be opened, the server that another one has started ends.
func TestAFailedStartClosesWhatItHasOpened(t *testing.T) {
	opened, closed := 0, 0
	all := rows()
	all[app.ProviderMariaDB] = row{build: func(embedding) (wired.Provider, error) {
		opened++
		return wired.Provider{Provider: absent{}, Inventory: absent{}, Close: func() { closed++ }}, nil
	}}
	dir := t.TempDir()
	f, err := folder.Open(dir, inputs)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	marker := filepath.Join(dir, "longshore.json") // which cannot be written any more
	if err := errors.Join(os.Remove(marker), os.MkdirAll(filepath.Join(marker, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := wiredIn(all, f, nil, nil, nil, slog.New(slog.DiscardHandler)); err == nil || opened != 1 || closed != 1 {
		t.Errorf("%d opened, %d closed: %v", opened, closed, err)
	}
}
