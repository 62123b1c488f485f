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

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/shell"
)

const (
	fileStart = "start.log" // receives the server's output until the server opens its log
	// The server's log is kept in this many files of this size.
	logs    = 10
	logSize = "10MB"
)

// ownSettings returns settings that make the server log to a folder, and that allow the locks that many
// tenants need. The log has no statements, not even those that fail: a tenant may have written a password
// into one.
func ownSettings(dir string) []string {
	return []string{
		"max_connections=200", "max_locks_per_transaction=256",
		"logging_collector=on", "log_directory=" + dir, "log_filename=postgresql-%Y%m%d-%H%M%S.log", "log_file_mode=0600",
		"log_rotation_size=" + logSize, "log_rotation_age=1d", "log_min_error_statement=panic",
	}
}

// prune removes all but the newest logs.
func prune(dir string, log *slog.Logger) {
	found, _ := filepath.Glob(filepath.Join(dir, "postgresql-*.log")) // the pattern is valid
	slices.Sort(found)                                                // the names sort by time
	for _, path := range found[:max(0, len(found)-logs)] {
		if err := os.Remove(path); err != nil {
			log.Warn("an old log of PostgreSQL cannot be removed", "error", err)
		}
	}
}

// makeFolders makes the server's folder and the folders in it, and lets the account reach them. The server's
// folder itself still belongs to the user of this program: the account may only pass through it.
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
			fmt.Sprintf("allow it (chmod o+x %s), or keep the data elsewhere with --data", shell.Word(barred)))
	}
	for _, name := range []string{dirSockets, dirLog} {
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := a.Give(folder); err != nil {
			return err
		}
	}
	return nil
}

// letPass lets the account's group pass through a folder that only its owner may use.
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

// socketFolder returns the folder of the superuser's socket: a folder in the server's folder or, if that path
// would be too long, a folder that the record names.
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

// initWhole sets up the server's data in a temporary folder, and renames that folder once the data are
// complete.
func (c Cluster) initWhole(ctx context.Context, major int) (err error) {
	made := c
	made.Data = c.Data + ".new"
	for _, locale := range locales(major) {
		// An interrupted start, or a locale that the system lacks, may have left something.
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
	// Every system has the last locale: its error says what is really wrong.
	return fmt.Errorf("setting up PostgreSQL: %w", err)
}

// locales returns initdb's flags for locales, best first. The best ones have the characters of all languages,
// and sort the same on every machine.
func locales(major int) (all [][]string) {
	const builtin = 17 // the first version with locales of its own
	all = [][]string{{"--locale=C.UTF-8"}, {"--locale=en_US.UTF-8"}, {"--locale=C"}}
	if major >= builtin {
		all = slices.Insert(all, 2, []string{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"})
	}
	return all
}

// checkOwner refuses data that belong to another user, as after a restore.
func (c Cluster) checkOwner() error {
	if c.Account.IsOther() && !c.Account.keeps(c.Data) {
		return advice.For(fmt.Sprintf("data of PostgreSQL in %q", c.Data),
			fmt.Sprintf("do not belong to the user %q alone, as whom the server runs", c.Account.Name),
			fmt.Sprintf("chown -R %s %[2]s %s %s; chmod 0700 %[2]s", c.Account.Name, shell.Word(c.Data),
				shell.Word(c.beside(dirLog)), shell.Word(c.beside(dirSockets))))
	}
	return nil
}
