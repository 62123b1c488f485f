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
	dir  string
	turn chan struct{} // held by the one change of this process that has the lock, or waits for it
}

var _ demo.Things = (*Folder)(nil)

// Open makes the folder if there is none, and removes what a crash has left.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening folder of things: %w", err)
	}
	f := &Folder{dir: dir, turn: make(chan struct{}, 1)}
	if err := f.locked(context.Background(), f.clean); err != nil {
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
	return f.write(t, func(tmp string) error { return os.Rename(tmp, path) })
}

// Create implements demo.Things.
func (f *Folder) Create(ctx context.Context, t demo.Thing) error {
	return f.change(ctx, "creating", t.Name, func(path string) error {
		err := f.write(t, func(tmp string) error {
			// Unlike a rename, a link never replaces what is there.
			return os.Link(tmp, path)
		})
		if errors.Is(err, fs.ErrExist) {
			return demo.ErrExists
		}
		return err
	})
}

// Replace implements demo.Things.
func (f *Folder) Replace(ctx context.Context, t demo.Thing) error {
	return f.change(ctx, "replacing", t.Name, func(path string) error {
		body, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && revision(body) != t.Revision) {
			return demo.ErrChanged
		}
		if err != nil {
			return err
		}
		return f.write(t, func(tmp string) error { return os.Rename(tmp, path) })
	})
}

// Delete implements demo.Things.
func (f *Folder) Delete(ctx context.Context, t demo.Thing) error {
	return f.change(ctx, "deleting", t.Name, func(path string) error {
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
		if err := os.Remove(path); err != nil {
			return err
		}
		return syncFolder(f.dir)
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

// change runs do under the lock, with the path of the thing.
func (f *Folder) change(ctx context.Context, doing, name string, do func(path string) error) error {
	err := checkName(name)
	if err == nil {
		err = f.locked(ctx, func() error { return do(f.path(name)) })
	}
	if err != nil {
		return fmt.Errorf("%s thing %q: %w", doing, name, err)
	}
	return nil
}

// write makes a whole file on the disk and then lets put give it its name.
func (f *Folder) write(t demo.Thing, put func(tmp string) error) (err error) {
	body, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.dir, leftover+"*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		// After a rename there is nothing to remove.
		if e := os.Remove(tmp.Name()); err == nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}()
	_, err = tmp.Write(append(body, '\n'))
	if err == nil {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = put(tmp.Name())
	}
	if err == nil {
		err = syncFolder(f.dir)
	}
	return err
}

// locked runs do under the folder's lock, or returns the context's error. Hazard:
// whoever waits for the system's lock keeps a thread, so one change of this
// process waits for it at a time.
func (f *Folder) locked(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	unlock, err := lock(filepath.Join(f.dir, lockName))
	if err != nil {
		return fmt.Errorf("locking folder of things: %w", err)
	}
	defer unlock()
	return do()
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
