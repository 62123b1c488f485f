package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/operator/backup"
)

const needsFile = "an ID and a FILE to write, or --all and a FILE"

func newBackup() *cobra.Command {
	var wish backup.Wish
	c := &cobra.Command{
		Use: "backup {ID | --all} FILE", Short: "Save an instance's database, or all of a data folder, into a file",
		Args: takes(1, 2, needsFile),
		Long: `Save the database of the instance with that ID into a FILE, in pg_dump's custom
format, through the broker that runs on the data folder. pg_restore of the server's
major version or a later one reads it. It holds the database as of one moment;
users go on working meanwhile.

With --all, save all of a data folder: records, the vault's key, the platforms'
logins, and the database server with its roles, as they were at one moment. The
broker may run or not. To restore, unpack it into an empty folder, of the same user
as before, and start the broker on that:

  tar -xzpf FILE -C DIR

Hazard: such a FILE holds every secret of the broker and all that users have stored.
Only its owner can read it; keep it so.

A FILE is written whole or not at all, and an existing one is never overwritten. If a
backup was killed, the next one into the same folder removes its unfinished file.`,
		Example: `  longshore backup 4c5a1c6e-4e5b-4bd7-8a6f-0cbb4e2b2f9d orders.dump
  longshore backup --all longshore.tar.gz`,
	}
	data := c.Flags().String("data", dataFolder, "data `DIR` of the broker")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if wish.All || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return instances.complete(c, args, typed)
	}
	c.Flags().BoolVar(&wish.All, "all", false, "save all of the data folder")
	c.Flags().StringVar(&wish.Platform, "platform", "", "the `NAME` of the instance's platform, where several have its ID")
	c.RunE = func(c *cobra.Command, args []string) error {
		file := args[len(args)-1]
		switch {
		case wish.All && len(args) != 1:
			return misused("backup --all takes a FILE alone: it saves every instance")
		case !wish.All && len(args) != 2:
			return misused("backup needs " + needsFile)
		case !wish.All:
			wish.Instance = args[0]
		case within(file, *data):
			return misused("name a FILE outside of the data folder: it would be lost with the folder")
		}
		return save(c.Context(), *data, wish, file, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

// within reports whether a file is below a folder.
func within(file, dir string) bool {
	below, err := filepath.Rel(absolute(dir), absolute(file))
	return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}

// absolute returns an absolute path with links resolved, as far as the path exists.
func absolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for rest := ""; ; path = filepath.Dir(path) {
		if whole, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
			return filepath.Join(whole, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
	}
}

// save writes the backup into the file, and prints its size.
func save(ctx context.Context, dir string, wish backup.Wish, file string, out, diagnostics io.Writer) error {
	counted := &counter{said: diagnostics}
	err := backup.File(file, func(to io.Writer) error {
		counted.to = to
		if !wish.All {
			return embedded.Backup(ctx, dir, wish, counted)
		}
		packed, err := gzip.NewWriterLevel(counted, gzip.BestSpeed)
		if err != nil {
			return err
		}
		return errors.Join(embedded.Backup(ctx, dir, wish, packed), packed.Close())
	})
	if err != nil {
		return err
	}
	printf(out, "%s: %s\n", file, megabytes(counted.bytes))
	return nil
}

// A counter counts the bytes written, and reports them from time to time.
type counter struct {
	to, said io.Writer
	bytes    int64
}

// saidEvery is the number of bytes between two reports.
const saidEvery = 64 << 20

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	if before := c.bytes; (before+int64(n))/saidEvery > before/saidEvery {
		printf(c.said, "%s written\n", megabytes(before+int64(n)))
	}
	c.bytes += int64(n)
	return n, err
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
