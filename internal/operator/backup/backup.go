// Package backup owns the archive of a data folder: what is in it, the order in which it is read
// while a broker and a PostgreSQL server run on the folder, and that it is written whole or not at
// all. It needs the records' own snapshot, a way to keep everything but the users of databases
// quiet for a moment, and a superuser's connection to the server. It leaves to others who may ask
// for a backup, and the dumps of single databases. The archive holds every secret of the folder.
package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/secret"
)

// A Wish says what to save: one instance, or a whole data folder.
type Wish struct {
	All bool `json:"all,omitempty"`
	// Instance is an id; Platform is needed if several platforms use that id.
	Instance string `json:"instance,omitempty"`
	Platform string `json:"platform,omitempty"`
}

// A Folder is a data folder to be saved.
type Folder struct {
	Dir string
	// Records is the name of the file with the records, which Snapshot copies into a file of another name.
	Records  string
	Snapshot func(path string) error
	// Quiet calls f while only the users of databases change anything in the folder or on the
	// server, and returns the error of f.
	Quiet func(f func() error) error
	// Without are the names in the folder that are left out. Names that begin with a dot are always left out.
	Without []string
	// Server is the server that runs in the folder; nil if none runs.
	Server *Server
}

// A Server is a PostgreSQL server that runs on a part of a data folder.
type Server struct {
	secret.Holder
	// Connect connects as a superuser.
	Connect func(ctx context.Context) (*pgx.Conn, error)
	// Data is the server's data directory, by its path in the folder.
	Data string
}

// unfinished is the prefix of temporary files and folders that a backup makes in the data folder.
const unfinished = ".backup-"

// Clear removes what a backup whose process died has left in a folder: these files hold secrets. No
// other process may have the folder open.
func Clear(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// Write writes the archive. Unpacked, it is a data folder as it was at one moment, at which the
// records, the vault's key and the server agree. That moment is near the end, while everything is
// quiet. Databases, which may be large, are read before it; what is written to them meanwhile is in
// the server's log of changes, which comes last.
func (f Folder) Write(ctx context.Context, w io.Writer) (err error) {
	archive := newArchive(ctx, f.Dir, w)
	var copied *serverCopy
	if f.Server != nil {
		if copied, err = beginServer(ctx, *f.Server, archive); err != nil {
			return err
		}
		defer copied.close()
		if err := copied.files(); err != nil {
			return fmt.Errorf("copying the server's files: %w", err)
		}
	}
	// The quiet phase writes into a file: the reader of the archive may be slow, and the broker must not
	// wait for it.
	held, err := os.CreateTemp(f.Dir, unfinished+"*") // mode 0600
	if err != nil {
		return fmt.Errorf("making a file in the data folder: %w", err)
	}
	defer func() { _ = os.Remove(held.Name()) }()
	err = f.Quiet(func() error {
		small := newArchive(ctx, f.Dir, held)
		err := f.quiet(small)
		if err == nil && copied != nil {
			err = copied.end(small)
		}
		return errors.Join(err, small.tar.Flush())
	})
	if err == nil {
		_, err = held.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = archive.append(held)
	}
	if err = errors.Join(err, held.Close()); err != nil {
		return fmt.Errorf("copying the data folder: %w", err)
	}
	if copied != nil {
		if err := copied.changes(); err != nil {
			return fmt.Errorf("copying the server's log of changes: %w", err)
		}
	}
	return archive.tar.Close()
}

// quiet copies everything but the running server's data directory.
func (f Folder) quiet(to *archive) error {
	snapshot, err := os.MkdirTemp(f.Dir, unfinished+"*") // mode 0700
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(snapshot) }()
	records := filepath.Join(snapshot, f.Records)
	if err := f.Snapshot(records); err != nil {
		return err
	}
	if err := to.file(records, f.Records); err != nil {
		return err
	}
	return to.walk(".", func(name string) bool {
		return name == f.Records || strings.HasPrefix(name, ".") || slices.Contains(f.Without, name) ||
			f.Server != nil && name == f.Server.Data
	})
}

// An archive is a tar file of files below a folder that is being written.
type archive struct {
	ctx context.Context
	dir string
	to  io.Writer
	tar *tar.Writer
}

func newArchive(ctx context.Context, dir string, to io.Writer) *archive {
	return &archive{ctx: ctx, dir: dir, to: to, tar: tar.NewWriter(to)}
}

// append adds the members of another archive that has been flushed but not closed.
func (a *archive) append(other io.Reader) error {
	if err := a.tar.Flush(); err != nil {
		return err
	}
	_, err := io.Copy(a.to, other)
	return err
}

// walk adds the files and folders below a path. It leaves out whatever leave reports, with
// everything below, and files that disappear meanwhile.
func (a *archive) walk(name string, leave func(name string) bool) error {
	return filepath.WalkDir(filepath.Join(a.dir, name), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = a.ctx.Err()
		}
		if err != nil {
			return err
		}
		below, err := filepath.Rel(a.dir, path)
		switch {
		case err != nil:
			return err
		case below == ".": // the archive's root folder is not added
			return nil
		case leave(below):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			return a.header(info, below+"/", 0)
		case d.Type().IsRegular():
			return a.file(path, below)
		}
		return nil
	})
}

// header begins a member with the given name and size, and the attributes of a file or folder.
func (a *archive) header(like fs.FileInfo, name string, size int64) error {
	h, err := tar.FileInfoHeader(like, "")
	if err != nil {
		return err
	}
	h.Name, h.Size = filepath.ToSlash(name), size
	return a.tar.WriteHeader(h)
}

// file adds a file under a name, at the length that it has at first: bytes that are appended meanwhile
// are left out, and bytes that are cut off become zeros. The server's log of changes repairs both.
func (a *archive) file(path, name string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := a.header(info, name, info.Size()); err != nil {
		return err
	}
	n, err := io.Copy(a.tar, io.LimitReader(f, info.Size()))
	if err == nil {
		_, err = io.CopyN(a.tar, zeros{}, info.Size()-n)
	}
	return err
}

// text adds a file with the given content, and the attributes of another file.
func (a *archive) text(like, name, content string) error {
	info, err := os.Stat(like)
	if err == nil {
		err = a.header(info, name, int64(len(content)))
	}
	if err == nil {
		_, err = io.WriteString(a.tar, content)
	}
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
