package pgserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// A program whose real place anyone may enter is still out of reach by a link that lies where only its owner may go.
func TestALinkInAPrivateFolderIsBarred(t *testing.T) {
	other := Account{Name: "other", UID: 65533, GID: 65533}
	public, private := t.TempDir(), t.TempDir()
	for dir, mode := range map[string]os.FileMode{public: 0o755, private: 0o700} {
		expect.OK(t, os.Chmod(dir, mode))
	}
	program, link := filepath.Join(public, "program"), filepath.Join(private, "link")
	expect.OK(t, os.WriteFile(program, nil, 0o600))
	expect.OK(t, os.Symlink(program, link))
	outside := expect.Get(other.Barred(program))(t)
	if outside != "" {
		t.Log("the folder for temporary files is barred itself:", outside)
		private = outside
	}
	if got, err := other.Barred(link); err != nil || got != private {
		t.Errorf("barred by %q, %v, want %q", got, err, private)
	}
}
