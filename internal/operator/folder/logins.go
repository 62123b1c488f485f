package folder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/longshore/longshore/internal/front/platforms"
)

// Logins are the registry of platforms in a data folder; the broker that runs on it reads
// changes by itself.
type Logins struct{ dir string }

const credentialsFormat = 1

// Logins are those of the folder.
func (f *Folder) Logins() Logins { return Logins{f.Dir} }

// LoginsOf are those of a folder in which a broker was started once.
func LoginsOf(dir string) (platforms.Registrar, error) {
	if err := Begun(dir); err != nil {
		return nil, err
	}
	l := Logins{dir}
	if _, err := os.Stat(l.path()); errors.Is(err, fs.ErrNotExist) {
		return nil, notAFolder(dir)
	}
	return l, nil
}

func (l Logins) path() string { return filepath.Join(l.dir, fileCredentials) }

// Registry implements platforms.Registrar.
func (l Logins) Registry(context.Context) (platforms.Registry, error) { return l.read() }

func (l Logins) read() (r platforms.Registry, err error) {
	raw, err := os.ReadFile(l.path())
	if err != nil {
		return r, err
	}
	var file struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(raw, &file) != nil {
		return r, platforms.ErrDocument
	}
	if file.Format > credentialsFormat {
		return r, fmt.Errorf("format %d of %s is not %d: %w", file.Format, fileCredentials, credentialsFormat, errNewer)
	}
	return platforms.Decode(raw)
}

// write is called under the lock.
func (l Logins) write(r platforms.Registry) error {
	raw, err := r.Encode()
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	members["format"] = json.RawMessage(strconv.Itoa(credentialsFormat))
	return writeJSON(l.path(), members)
}

// locked keeps others from changing the registry meanwhile.
func (l Logins) locked(do func() error) error {
	lock, err := lockFile(l.path() + ".lock")
	if errors.Is(err, errLocked) {
		return platforms.ErrChanging
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	giveToOwner(lock.Name())
	return do()
}

// Change implements platforms.Registrar.
func (l Logins) Change(ctx context.Context, change func(platforms.Registry) (platforms.Registry, error)) error {
	return l.locked(func() error {
		r, err := l.Registry(ctx)
		if err == nil {
			r, err = change(r)
		}
		if err != nil {
			return err
		}
		return l.write(r)
	})
}

// Open gives the registry, or begins it with first. Begun says which.
func (l Logins) Open(first platforms.Registry) (r platforms.Registry, begun bool, err error) {
	fail := fault(l.dir)
	r, err = l.read()
	switch {
	case err == nil:
		return r, false, nil
	case errors.Is(err, fs.ErrNotExist):
	case errors.As(err, new(*fs.PathError)):
		return r, false, fail("has a "+fileCredentials+" that cannot be read", "allow it to be read", err)
	case ofAnotherVersion(err):
		return r, false, fail(unreadable(fileCredentials, err))
	default:
		return r, false, fail("has a damaged "+fileCredentials,
			"restore it from a backup; without it, every platform but the first is unknown", err)
	}
	if err := l.locked(func() error { return l.write(first) }); err != nil {
		return r, false, fail("cannot keep the platforms' credentials", "allow it to be written", err)
	}
	return first, true, nil
}
