package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
)

const (
	fileStart = "start.log" // what the server says before it has a log
	// The server's log: so many files of that size.
	logs    = 10
	logSize = "10MB"
)

// ownSettings have the server keep its log in a folder, and take as many locks as many
// tenants need. Statements are not in it,
// also of those that fail: a tenant may have written a password into one.
func ownSettings(dir string) []string {
	return []string{
		"max_connections=200", "max_locks_per_transaction=256",
		"logging_collector=on", "log_directory=" + dir, "log_filename=postgresql-%Y%m%d-%H%M%S.log", "log_file_mode=0600",
		"log_rotation_size=" + logSize, "log_rotation_age=1d", "log_min_error_statement=panic",
	}
}

// prune removes all but the newest logs.
func prune(dir string, log *slog.Logger) {
	found, _ := filepath.Glob(filepath.Join(dir, "postgresql-*.log")) // the pattern is right
	slices.Sort(found)                                                // by their times
	for _, path := range found[:max(0, len(found)-logs)] {
		if err := os.Remove(path); err != nil {
			log.Warn("an old log of PostgreSQL cannot be removed", "error", err)
		}
	}
}

// makeFolders makes what a server's folder holds, and lets the account reach it.
// The folder itself stays who runs this program's: the account only passes.
func makeFolders(dir string, a Account) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, folder := range []string{filepath.Dir(dir), dir} {
		if err := a.letPass(folder); err != nil {
			return err
		}
	}
	barred, err := a.Barred(dir)
	if err != nil {
		return err
	}
	if barred != "" {
		return advice.For(fmt.Sprintf("folder %q", barred),
			fmt.Sprintf("cannot be passed by the user %q, as whom the PostgreSQL server runs", a.Name),
			fmt.Sprintf("allow it (chmod o+x %s), or keep the data elsewhere with --data", barred))
	}
	for _, name := range []string{dirSockets, dirLog} {
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := a.Give(folder); err != nil {
			return err
		}
	}
	return nil
}

// letPass lets the account pass through a folder that is for its owner alone, and
// nobody else: by the account's group.
func (a Account) letPass(dir string) error {
	const group, pass = 0o070, 0o010
	info, err := os.Stat(dir)
	if err != nil || !a.IsOther() || a.mayPass(info) || info.Mode().Perm()&group != 0 {
		return err
	}
	if err := os.Chown(dir, -1, int(a.GID)); err != nil {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm()|pass)
}

// socketFolder is where the superuser's socket is: in the server's folder, or where
// its path would be too long, in one of its own that is recorded.
func (r *record) socketFolder(dir string, a Account) (string, error) {
	own := filepath.Join(dir, dirSockets)
	if len(own) <= longestSockets {
		return own, nil
	}
	if r.Sockets != "" && a.keeps(r.Sockets) {
		return r.Sockets, nil
	}
	for _, temp := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		made, err := os.MkdirTemp(temp, "longshore-")
		if err != nil {
			continue
		}
		if barred, err := a.Barred(temp); err == nil && barred == "" && len(made) <= longestSockets {
			r.Sockets = made
			return made, a.Give(made)
		}
		_ = os.Remove(made)
	}
	return "", advice.For(folderName(dir), "has a path that is too long for a socket, and there is no folder for temporary files",
		"name a shorter folder with --data, or a folder for temporary files in TMPDIR")
}

// initWhole sets the server's data up. A folder that is there is whole.
func (c Cluster) initWhole(ctx context.Context, major int) (err error) {
	made := c
	made.Data = c.Data + ".new"
	for _, locale := range locales(major) {
		// What is left is of a start that was stopped, or of a locale that the system has
		// not.
		if err := os.RemoveAll(made.Data); err != nil {
			return err
		}
		if err := os.Mkdir(made.Data, 0o700); err != nil {
			return err
		}
		if err := c.Account.Give(made.Data); err != nil {
			return err
		}
		if err = made.Init(ctx, append(locale, "--data-checksums", "--no-instructions")...); err == nil {
			return os.Rename(made.Data, c.Data)
		}
		if ctx.Err() != nil {
			break
		}
	}
	// The last locale is on every system: what stops that one is what is wrong.
	return fmt.Errorf("setting up PostgreSQL: %w", err)
}

// locales are the flags for the order and the letters that texts have, best first:
// of all languages, and the same on every machine.
func locales(major int) (all [][]string) {
	const builtin = 17 // has locales of its own
	all = [][]string{{"--locale=C.UTF-8"}, {"--locale=en_US.UTF-8"}, {"--locale=C"}}
	if major >= builtin {
		all = slices.Insert(all, 2, []string{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"})
	}
	return all
}

// checkOwner says what to do where the data are another user's, as after a restore.
func (c Cluster) checkOwner() error {
	if c.Account.IsOther() && !c.Account.keeps(c.Data) {
		return advice.For(fmt.Sprintf("data of PostgreSQL in %q", c.Data),
			fmt.Sprintf("are not the user %q's alone, as whom the server runs", c.Account.Name),
			fmt.Sprintf("chown -R %s %s; chmod 0700 %s", c.Account.Name, strings.Join([]string{
				c.Data, filepath.Join(filepath.Dir(c.Data), dirLog), filepath.Join(filepath.Dir(c.Data), dirSockets)}, " "+
				""), c.Data))
	}
	return nil
}
