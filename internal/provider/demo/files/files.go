// Package files keeps the demo's things in a folder, one JSON file each. It
// owns that folder, which survives crashes at any line: a file is there whole
// or not at all. What a thing means is left to package demo.
package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider/demo"
)

// PageSize is how many things are on a page of List at most.
const PageSize = 16

const (
	extension = ".json"
	// leftover begins the names of files that are not yet a thing.
	leftover = ".new-"
	lockName = ".lock"
)

// A Folder is a demo.Things over a folder. Several may be open on one folder,
// in one process or in several.
type Folder struct {
	dir   string
	turn  chan struct{} // held by whoever of this process has the lock, or waits for it
	queue queue
}

var _ demo.Things = (*Folder)(nil)

// Open makes the folder if there is none, and removes what a crash has left.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening folder of things: %w", err)
	}
	f := &Folder{dir: dir, turn: make(chan struct{}, 1)}
	unlock, err := f.lock()
	if err == nil {
		err = f.clean()
		unlock()
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder of things: %w", err)
	}
	return f, nil
}

// clean removes unfinished files. Whoever writes one holds the lock until it
// is finished, so under the lock each of them is left over from a crash.
func (f *Folder) clean() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), leftover):
			err = os.Remove(filepath.Join(f.dir, e.Name()))
		case strings.HasSuffix(e.Name(), extension):
			err = f.withoutDigest(filepath.Join(f.dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	// A crash may also have come between a change and its sync.
	return syncFolder(f.dir)
}

// digest is the member in which earlier programs kept a digest of the user's
// parameters, which tells those that can be guessed. Within a text, its quotes
// would be escaped.
var digest = []byte(`"parameters":`)

// withoutDigest writes a thing again that an earlier program wrote. What cannot
// be read is left as it is: whoever asks for it is told.
func (f *Folder) withoutDigest(path string) error {
	var t demo.Thing
	body, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(body, digest) || json.Unmarshal(body, &t) != nil {
		return nil
	}
	c := &change{thing: &t, path: path, put: os.Rename}
	f.write(c)
	f.finish(c)
	return c.err
}

// Create implements demo.Things.
func (f *Folder) Create(ctx context.Context, t demo.Thing) error {
	return f.change(ctx, "creating", t.Name, &t, func(tmp, path string) error {
		// Unlike a rename, a link never replaces what is there.
		err := os.Link(tmp, path)
		if errors.Is(err, fs.ErrExist) {
			return demo.ErrExists
		}
		return err
	})
}

// Replace implements demo.Things.
func (f *Folder) Replace(ctx context.Context, t demo.Thing) error {
	return f.change(ctx, "replacing", t.Name, &t, func(tmp, path string) error {
		body, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && revision(body) != t.Revision) {
			return demo.ErrChanged
		}
		if err != nil {
			return err
		}
		return os.Rename(tmp, path)
	})
}

// Delete implements demo.Things.
func (f *Folder) Delete(ctx context.Context, t demo.Thing) error {
	return f.change(ctx, "deleting", t.Name, nil, func(_, path string) error {
		body, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if revision(body) != t.Revision {
			return demo.ErrChanged
		}
		return os.Remove(path)
	})
}

// Get implements demo.Things.
func (f *Folder) Get(ctx context.Context, name string) (demo.Thing, error) {
	t, err := f.read(ctx, name)
	if err != nil {
		return demo.Thing{}, fmt.Errorf("reading thing %q: %w", name, err)
	}
	return t, nil
}

// List implements demo.Things, in the order of the names; the cursor is the
// last name of the page before.
func (f *Folder) List(ctx context.Context, cursor string) ([]demo.Thing, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, "", fmt.Errorf("listing things: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), extension)
		if ok && name > cursor && checkName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names) // with the extension, "a-b" came before "a"
	next := ""
	if len(names) > PageSize {
		names = names[:PageSize]
		next = names[PageSize-1]
	}
	page := make([]demo.Thing, 0, len(names))
	for _, name := range names {
		t, err := f.Get(ctx, name)
		if errors.Is(err, demo.ErrNotFound) {
			continue // it went while the page was read
		}
		if err != nil {
			return nil, "", err
		}
		page = append(page, t)
	}
	return page, next, nil
}

func (f *Folder) read(ctx context.Context, name string) (demo.Thing, error) {
	if err := ctx.Err(); err != nil {
		return demo.Thing{}, err
	}
	if err := checkName(name); err != nil {
		return demo.Thing{}, err
	}
	path := f.path(name)
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		// In a folder that is gone, or not mounted, nothing is known to be
		// absent. The lock is always there.
		if _, err := os.Stat(filepath.Join(f.dir, lockName)); err != nil {
			return demo.Thing{}, fmt.Errorf("folder of things is gone: %w", err)
		}
		return demo.Thing{}, demo.ErrNotFound
	}
	if err != nil {
		return demo.Thing{}, err
	}
	var t demo.Thing
	if err := json.Unmarshal(body, &t); err != nil {
		return demo.Thing{}, fmt.Errorf("file %q is damaged: %w", path, err)
	}
	if t.Name != name {
		return demo.Thing{}, fmt.Errorf("file %q is damaged: it holds thing %q", path, t.Name)
	}
	t.Revision = revision(body)
	return t, nil
}

// lock waits for the folder's lock.
func (f *Folder) lock() (unlock func(), err error) {
	unlock, err = lock(filepath.Join(f.dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("locking folder of things: %w", err)
	}
	return unlock, nil
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name+extension) }

// checkName keeps names inside the folder.
func checkName(name string) error {
	if name == "" || len(name) > 200 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return errors.New("a name has 1 to 200 characters of a-z, 0-9 and -")
	}
	return nil
}

// revision names a content: equal contents are the same thing.
func revision(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
