package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
)

// A snapshot is a whole store file of the same identity, with what was committed
// before, while others commit.
func TestSnapshot(t *testing.T) {
	s := open(t, newPath(t))
	want := fill(t, s, 300)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			err = s.Commit(ctx, store.Put(fixture("partition 0", fmt.Sprint("another ", i))))
		}
		ended <- err
	}()
	path := filepath.Join(t.TempDir(), "snapshot.db")
	for range 20 {
		_ = os.Remove(path)
		if err := s.Snapshot(path); err != nil {
			t.Fatal(err)
		}
		checked, err := bolt.Check(t.Context(), path)
		if err != nil || checked.Wrong > 0 || checked.Identity != s.Identity() || checked.Records < len(want) {
			t.Fatalf("the snapshot: %d records, identity %q, %v, %v", checked.Records, checked.Identity, checked.Problems, err)
		}
	}
	stop()
	<-ended
	got, err := contents(t.Context(), open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	for key := range got {
		if strings.HasPrefix(key.Sort, "another") {
			delete(got, key)
		}
	}
	if diff := cmp.Diff(want, got, bodies); diff != "" {
		t.Errorf("what the snapshot holds (-want +got):\n%s", diff)
	}
	if err := s.Snapshot(path); err == nil {
		t.Error("a snapshot was written over a file that was there")
	}
}
