package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// A program whose real place anyone may enter is still out of reach by a link that lies where only its owner may go.
func TestALinkInAPrivateFolderIsBarred(t *testing.T) {
	other := Account{Name: "other", UID: 65533, GID: 65533}
	public, private := t.TempDir(), t.TempDir()
	expect.OK(t, errors.Join(os.Chmod(public, 0o755), os.Chmod(private, 0o700)))
	program, link := filepath.Join(public, "program"), filepath.Join(private, "link")
	expect.OK(t, errors.Join(os.WriteFile(program, nil, 0o600), os.Symlink(program, link)))
	if outside := expect.Get(other.Barred(program))(t); outside != "" {
		t.Log("the folder for temporary files is barred itself:", outside)
		private = outside
	}
	expect.Same(t, "barred by", private, expect.Get(other.Barred(link))(t))
}
