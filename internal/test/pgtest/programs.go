package pgtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
	"github.com/longshore/longshore/internal/test/testserver"
)

// installed is where `make postgres-all` puts a version, from the module's root.
const installed = ".tools/postgres-%s.*"

// Programs is the folder of a version's programs, which the server's user can run.
// Where they are not installed, the test fails.
func Programs(t testing.TB, version string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL, which -short leaves out")
	}
	account, err := pgserver.FindAccount("")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := programs(version, account)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// programs is the folder of a version's programs, which the account can run.
func programs(version string, account pgserver.Account) (string, error) {
	pattern, err := testserver.Installed(fmt.Sprintf(installed, version) + "/installed")
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return "", errors.Join(err, fmt.Errorf("PostgreSQL %s is not installed: run `make postgres-all`", version))
	}
	whole := filepath.Dir(found[len(found)-1])
	barred, err := account.Barred(filepath.Join(whole, "bin", "postgres"))
	if err != nil {
		return "", err
	}
	if barred != "" {
		if whole, err = copied(whole); err != nil {
			return "", err
		}
	}
	return filepath.Join(whole, "bin"), nil
}

// copied is a copy of the programs where any user can run them, which is made once
// for what is in them: the checkout may lie where only root may go.
func copied(whole string) (string, error) {
	sum, err := contents(whole)
	if err != nil {
		return "", err
	}
	to := filepath.Join(os.TempDir(), "longshore-"+filepath.Base(whole)+"-"+sum)
	if info, err := os.Lstat(to); err == nil {
		if !ours(info) {
			return "", fmt.Errorf("%s is not what a test has made: remove it", to)
		}
		return to, nil
	}
	made, err := os.MkdirTemp(os.TempDir(), "longshore-copy-")
	if err != nil {
		return "", err
	}
	if err := errors.Join(copyTree(whole, made), os.Chmod(made, 0o755)); err != nil {
		return "", errors.Join(err, os.RemoveAll(made))
	}
	if err := os.Rename(made, to); err != nil { // another test process was quicker
		err = os.RemoveAll(made)
		return to, err
	}
	return to, nil
}

// contents tells one set of programs from another, by what the files are called, how
// large they are, and what is in the server.
func contents(whole string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(whole, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %d\n", path[len(whole):], info.Size())
		return nil
	})
	if err != nil {
		return "", err
	}
	raw, err := os.ReadFile(filepath.Join(whole, "bin", "postgres"))
	if err != nil {
		return "", err
	}
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// copyTree copies files, folders and links, for anyone to read.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		switch {
		case d.IsDir():
			return os.Mkdir(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(target, raw, 0o600), os.Chmod(target, info.Mode().Perm()|0o044))
	})
}
