package folder

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/longshore/longshore/internal/base/filelock"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// Logins is the registry of platforms in a data folder. A broker that runs on the folder notices changes by itself.
type Logins struct{ dir string }

const credentialsFormat = 1

// Logins returns the registry of the folder.
func (f *Folder) Logins() Logins { return Logins{f.Dir} }

// LoginsOf returns the registry of a folder in which a broker was started once.
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

// Registry implements platforms.Registrar. A lost key costs the sign-ons, but not the platforms' access.
func (l Logins) Registry(ctx context.Context) (platforms.Registry, error) {
	r, err := l.sealed()
	if err != nil {
		return r, err
	}
	return r.Sealed(func(of, sealed string) (string, error) {
		raw, err := base64.StdEncoding.DecodeString(sealed)
		if err != nil {
			return "", platforms.ErrDocument
		}
		var plain []byte
		v, err := l.vault()
		if err == nil {
			plain, err = v.Open(ctx, labelOf(of), raw)
		}
		if errors.Is(err, vault.ErrSealed) || errors.Is(err, vault.ErrKey) || errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return string(plain), err
	})
}

// sealed reads the registry, with the secrets of sign-ons as they lie in the folder.
func (l Logins) sealed() (r platforms.Registry, err error) {
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

// vault returns the vault that seals the secrets of sign-ons.
func (l Logins) vault() (*vault.Local, error) {
	return vault.ReadKeyFile(filepath.Join(l.dir, fileKey))
}

func labelOf(platform string) vault.Label {
	return vault.Label{Key: lifecycle.Key{Platform: platform}, Member: vault.SignOn}
}

// write writes the registry. The caller holds the lock. A secret that could not be opened stays as it lies
// in the folder: the key may be found again.
func (l Logins) write(r platforms.Registry) error {
	kept := map[string]string{}
	if was, err := l.sealed(); err == nil {
		_, _ = was.Sealed(func(of, sealed string) (string, error) { kept[of] = sealed; return "", nil })
	}
	r, err := r.Sealed(func(of, plain string) (string, error) {
		if plain == "" {
			return kept[of], nil
		}
		v, err := l.vault()
		if err != nil {
			return "", err
		}
		sealed, err := v.Seal(context.Background(), labelOf(of), []byte(plain))
		return base64.StdEncoding.EncodeToString(sealed), err
	})
	if err != nil {
		return err
	}
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

// locked keeps other processes from changing the registry meanwhile.
func (l Logins) locked(do func() error) error {
	lock, err := lockFile(l.path() + ".lock")
	if errors.Is(err, filelock.ErrLocked) {
		return platforms.ErrChanging
	}
	if err != nil {
		return err
	}
	defer unlock(lock)
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

// Open returns the registry, or begins it with first; begun says which.
func (l Logins) Open(first platforms.Registry) (r platforms.Registry, begun bool, err error) {
	fail := fault(l.dir)
	r, err = l.Registry(context.Background())
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
