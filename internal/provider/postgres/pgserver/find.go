package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
)

// EnvBin names the setting for the folder of PostgreSQL's programs.
const EnvBin = "LONGSHORE_POSTGRES_BIN"

const (
	// oldest is the oldest major version for a new server.
	oldest = 16
	// howToGet tells the operator how to get the programs.
	howToGet = "run `make postgres` in a checkout of Longshore, install PostgreSQL 16 or later, " +
		"or name the folder of its programs in " + EnvBin
)

// A Programs is a folder of PostgreSQL's programs.
type Programs struct {
	Dir   string
	Major int
}

// ErrNone says that no usable programs were found.
var ErrNone = errors.New("no PostgreSQL")

// Find looks for programs that the account can run, of the given major version (0 for any supported one): in
// the named folder or, if none is named, in PATH, where systems put them, and where `make postgres` puts
// them. The error lists the programs that were found unusable.
func Find(ctx context.Context, major int, named string, account Account) (Programs, error) {
	var met []string
	for _, dir := range places(named) {
		p, err := inspect(ctx, dir)
		if errors.Is(err, os.ErrNotExist) && named == "" {
			continue
		}
		if err == nil {
			err = suits(p, major, account)
		}
		if err == nil {
			return p, nil
		}
		met = append(met, fmt.Sprintf("%s: %v", dir, err))
	}
	what, mend := "is not installed", howToGet
	if named != "" {
		what = "is not in the folder that " + EnvBin + " names"
	}
	if major != 0 {
		what = fmt.Sprintf("%d, which wrote this data, %s", major, what)
		mend = fmt.Sprintf("install PostgreSQL %d (`make postgres-all` has 16, 17 and 18), or name the folder of its "+
			"programs in %s; how data move to another version is in docs/own-postgres.md", major, EnvBin)
	}
	cause := ErrNone
	if len(met) > 0 {
		cause = fmt.Errorf("%w: %s", ErrNone, strings.Join(met, "; "))
	}
	return Programs{}, &advice.Error{Name: "PostgreSQL", What: what, Remedy: mend, Cause: cause}
}

// suits says why programs are unusable; nil if they are usable.
func suits(p Programs, major int, account Account) error {
	switch {
	case major != 0 && p.Major != major:
		return fmt.Errorf("it is version %d", p.Major)
	case p.Major < oldest:
		return fmt.Errorf("it is version %d, and %d is the oldest that is supported", p.Major, oldest)
	}
	barred, err := account.Barred(filepath.Join(p.Dir, "postgres"))
	if err == nil && barred != "" {
		err = fmt.Errorf("the user %q, as whom the server runs, may not pass %s: allow it (chmod o+x), or put the programs "+
			"elsewhere",
			account.Name, barred)
	}
	return err
}

// places returns the folders to search, best first.
func places(named string) (all []string) {
	if named != "" {
		return []string{named}
	}
	all = filepath.SplitList(os.Getenv("PATH"))
	newest := func(patterns ...string) {
		for _, pattern := range patterns {
			found, _ := filepath.Glob(pattern) // the patterns are valid
			slices.SortFunc(found, func(a, b string) int { return pgconfig.Major(b) - pgconfig.Major(a) })
			all = append(all, found...)
		}
	}
	newest("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
	if runtime.GOOS == "darwin" {
		newest("/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
			"/Applications/Postgres.app/Contents/Versions/*/bin")
	}
	for _, root := range roots() {
		all = append(all, filepath.Join(root, installed))
		newest(filepath.Join(root, ".tools", "postgres-*", "bin"))
	}
	return all
}

// installed is the folder that `make postgres` makes, relative to a checkout's root.
var installed = filepath.Join(".tools", "postgres-17.11.0", "bin")

// roots returns folders that may be a checkout: the one above the program's folder, and the working folder.
func roots() (all []string) {
	if program, err := os.Executable(); err == nil {
		if program, err = filepath.EvalSymlinks(program); err == nil {
			all = append(all, filepath.Dir(filepath.Dir(program)))
		}
	}
	if dir, err := os.Getwd(); err == nil {
		all = append(all, dir)
	}
	return all
}

// inspect asks the programs in a folder for their version. It returns os.ErrNotExist if they are not there.
func inspect(ctx context.Context, dir string) (Programs, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Programs{}, err
	}
	whole, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return Programs{}, err
	}
	dir = filepath.Dir(whole)
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return Programs{}, err
		}
	}
	said, err := exec.CommandContext(ctx, whole, "--version").CombinedOutput()
	if err != nil {
		return Programs{}, fmt.Errorf("it does not run: %w: %s", err, end(said))
	}
	p := Programs{Dir: dir, Major: pgconfig.Major(string(said))}
	if p.Major == 0 {
		return p, fmt.Errorf("it says no version: %s", end(said))
	}
	return p, nil
}
