package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/front/platforms"
)

// A folderRegistrar keeps the registry in a data folder; the broker that runs on it
// reads changes by itself.
type folderRegistrar struct{ dir string }

const credentialsFormat = 1

// FolderRegistrar keeps the registry of the embedded broker over a data folder, on
// which the broker was started once.
func FolderRegistrar(dir string) (platforms.Registrar, error) {
	if _, err := markerOf(dir); err != nil {
		return nil, err
	}
	f := folderRegistrar{dir}
	if _, err := os.Stat(f.path()); errors.Is(err, fs.ErrNotExist) {
		return nil, notAFolder(dir)
	}
	return f, nil
}

func (f folderRegistrar) path() string { return filepath.Join(f.dir, fileCredentials) }

// Registry implements platforms.Registrar.
func (f folderRegistrar) Registry(context.Context) (platforms.Registry, error) { return f.read() }

func (f folderRegistrar) read() (r platforms.Registry, err error) {
	raw, err := os.ReadFile(f.path())
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
func (f folderRegistrar) write(r platforms.Registry) error {
	raw, err := r.Encode()
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	members["format"] = json.RawMessage(strconv.Itoa(credentialsFormat))
	return writeJSON(f.path(), members)
}

// locked keeps others from changing the registry meanwhile.
func (f folderRegistrar) locked(do func() error) error {
	lock, err := lockFile(f.path() + ".lock")
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
func (f folderRegistrar) Change(ctx context.Context, change func(platforms.Registry) (platforms.Registry, error)) error {
	return f.locked(func() error {
		r, err := f.Registry(ctx)
		if err == nil {
			r, err = change(r)
		}
		if err != nil {
			return err
		}
		return f.write(r)
	})
}

// initialRegistry is the default platform alone, with a generated password.
func initialRegistry() platforms.Registry {
	return platforms.Registry{Platforms: []platforms.Platform{{
		ID: platforms.Default, Name: platforms.Default,
		Credential: platforms.Credential{Username: "broker", Password: platforms.NewPassword()},
	}}}
}

// first is the registry as a broker starts with it. The environment gives the first
// credential of a new folder. Later the folder alone decides, and the environment must
// name a login that it knows: otherwise the next start would undo a rotation, and a
// leaked password would stay valid.
func (f folderRegistrar) first(s Settings, log *slog.Logger) (platforms.Registry, error) {
	r, err := f.read()
	fail := func(what, mend string, cause error) (platforms.Registry, error) {
		return r, &advice.Error{Name: dataFolder(f.dir), What: what, Remedy: mend, Cause: cause}
	}
	switch {
	case err == nil:
		return r, f.known(r, s, log)
	case errors.Is(err, fs.ErrNotExist):
	case errors.As(err, new(*fs.PathError)):
		return fail("has a "+fileCredentials+" that cannot be read", "allow it to be read", err)
	case ofAnotherVersion(err):
		return fail(unreadable(fileCredentials, err))
	default:
		return fail("has a damaged "+fileCredentials,
			"restore it from a backup; without it, every platform but the first is unknown", err)
	}
	r = initialRegistry()
	if s.Username != "" {
		first := &r.Platforms[0]
		first.Credential, first.Chosen = platforms.Credential{Username: s.Username, Password: s.Password}, true
		log.Info("the data folder keeps the user name and the password that are set; from now on it alone decides who may log in",
			"data", f.dir)
	}
	if err := f.locked(func() error { return f.write(r) }); err != nil {
		return fail("cannot keep the platforms' credentials", "allow it to be written", err)
	}
	return r, nil
}

// known refuses an environment that names a login which the folder does not know, or no
// longer knows.
func (f folderRegistrar) known(r platforms.Registry, s Settings, log *slog.Logger) error {
	if s.Username == "" {
		return nil
	}
	first := r.Platforms[0]
	mend := fmt.Sprintf("unset both %s and %s, as the folder keeps its own, or set them to what the platform logs in with now; "+
		"`longshore platform rotate %s --data %s` gives it a new password", app.EnvUsername, app.EnvPassword, first.Name, f.dir)
	until, known := first.Until(s.Username, s.Password)
	switch {
	case !first.Removed.IsZero():
		return advice.For(app.EnvUsername,
			fmt.Sprintf("is set, but platform %q was removed from data folder %q", first.Name, f.dir),
			fmt.Sprintf("unset both it and %s; `longshore platform add %s --data %s` lets the platform in again",
				app.EnvPassword, first.Name, f.dir))
	case s.Username != first.Username:
		what := fmt.Sprintf("is %q, but in data folder %q platform %q logs in as %q", s.Username, f.dir,
			first.Name, first.Username)
		return advice.For(app.EnvUsername, what, mend)
	case !known:
		return advice.For(app.EnvPassword, fmt.Sprintf("is not the password of platform %q in data folder %q", first.Name, f.dir),
			mend)
	case until.IsZero():
		return nil
	case !now().Before(until):
		return advice.For(app.EnvPassword, fmt.Sprintf(
			"is the old password of platform %q in data folder %q, which ended at %s", first.Name, f.dir,
			until.Format(time.RFC3339)), mend)
	}
	log.Warn(app.EnvPassword+" is the old password, which a rotation has replaced: set the new one, or unset it and "+
		app.EnvUsername, "valid_until", until)
	return nil
}

// shortPassword is the length below which a password can be guessed.
const shortPassword = 12

// warnOfShort warns of short passwords.
func warnOfShort(r platforms.Registry, dir string, log *slog.Logger) {
	for _, p := range r.Platforms {
		if p.Removed.IsZero() && utf8.RuneCountInString(p.Password) < shortPassword {
			log.Warn(fmt.Sprintf("a password has fewer than %d characters, and may be guessed: "+
				"`longshore platform rotate %s --data %s` gives another", shortPassword, p.Name, dir), "platform", p.Name)
		}
	}
}
