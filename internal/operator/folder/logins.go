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
	if r, err = platforms.Decode(raw); err != nil {
		return r, err
	}
	return r.Sealed(l.withVault(func(v vault.Vault, label vault.Label, sealed string) (string, error) {
		raw, err := base64.StdEncoding.DecodeString(sealed)
		if err != nil {
			return "", platforms.ErrDocument
		}
		plain, err := v.Open(context.Background(), label, raw)
		if errors.Is(err, vault.ErrSealed) {
			return "", nil // a lost key costs the sign-ons, but not the platforms' access
		}
		return string(plain), err
	}))
}

// withVault adapts a function of the vault to the secrets of sign-ons; a secret that was lost stays empty.
func (l Logins) withVault(do func(v vault.Vault, label vault.Label, text string) (string, error)) func(string, string) (string,
	error) {
	return func(of, text string) (string, error) {
		if text == "" {
			return "", nil
		}
		v, err := vault.ReadKeyFile(filepath.Join(l.dir, fileKey))
		if err != nil {
			return "", err
		}
		return do(v, vault.Label{Key: lifecycle.Key{Platform: of}, Member: vault.SignOn}, text)
	}
}

// write writes the registry. The caller holds the lock.
func (l Logins) write(r platforms.Registry) error {
	r, err := r.Sealed(l.withVault(func(v vault.Vault, label vault.Label, plain string) (string, error) {
		sealed, err := v.Seal(context.Background(), label, []byte(plain))
		return base64.StdEncoding.EncodeToString(sealed), err
	}))
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
	if errors.Is(err, errLocked) {
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
