package pgcopy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/test/expect"
)

// The programs say their version, whatever else they say; who has others in their place is told so.
func TestFind(t *testing.T) {
	for said, want := range map[string]int{
		"pg_dump (PostgreSQL) 17.2 (Debian 17.2-1)": 17, "pg_dump (PostgreSQL) 18beta1": 18, "": 0,
	} {
		dir := t.TempDir()
		for _, name := range []string{"pg_dump", "pg_restore"} {
			expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+said+"'\n"), 0o755))
		}
		p, err := pgcopy.Find(t.Context(), dir)
		if _, told := errors.AsType[*advice.Error](err); told != (want == 0) || err == nil && p.Major != want {
			t.Errorf("%q is %+v, %v", said, p, err)
		}
	}
}
