package pgserver

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/longshore/longshore/internal/base/advice"
)

// EnvUser names the setting for the system user that the server runs as if root starts it.
const EnvUser = "LONGSHORE_POSTGRES_USER"

// An Account is the system user that a server runs as. The zero Account is the user of this program.
type Account struct {
	Name     string
	UID, GID uint32
}

// IsOther reports whether the account differs from the user of this program.
func (a Account) IsOther() bool { return a != Account{} }

func (a Account) name() (string, error) {
	if a.IsOther() {
		return a.Name, nil
	}
	own, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("finding out who runs this program: %w", err)
	}
	return own.Username, nil
}

// FindAccount finds the account for a new server: the zero Account, unless this program runs as root, since
// PostgreSQL refuses to run as root. Wanted is a user's name, or empty.
func FindAccount(wanted string) (Account, error) {
	if os.Geteuid() != 0 {
		own, err := user.Current()
		if wanted != "" && (err != nil || own.Username != wanted) {
			return Account{}, advice.For(EnvUser, fmt.Sprintf("is %q, which is not who runs this program", wanted),
				"leave it out: only root can run the server as somebody else")
		}
		return Account{}, nil
	}
	names := []string{wanted}
	if wanted == "" {
		names = []string{"postgres", "_postgres", "nobody"}
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return Account{Name: name, UID: uint32(uid), GID: uint32(gid)}, nil
		}
	}
	if wanted != "" {
		return Account{}, advice.For(EnvUser, fmt.Sprintf("is %q, which is root or no user of this system", wanted), "name "+
			"another")
	}
	return Account{}, advice.For("PostgreSQL", "refuses to run as root, and this system has no user postgres",
		"make one (useradd --system postgres), or name another one in "+EnvUser)
}

// Give makes the account the owner of a file or folder.
func (a Account) Give(path string) error {
	if !a.IsOther() {
		return nil
	}
	return os.Lchown(path, int(a.UID), int(a.GID))
}

// giveGroup gives a file to the account's group, and leaves its owner as it is.
func (a Account) giveGroup(path string) error {
	if !a.IsOther() {
		return nil
	}
	return os.Lchown(path, -1, int(a.GID))
}

// Barred returns the first folder on the way to a path that the account may not pass; empty if the account
// can reach the path.
func (a Account) Barred(path string) (string, error) {
	given, err := filepath.Abs(path)
	if err != nil || !a.IsOther() {
		return "", err
	}
	whole, err := filepath.EvalSymlinks(given)
	if err != nil {
		return "", err
	}
	// The path before links are resolved counts, too: a link may lie in a folder that the account may not
	// pass.
	for _, dir := range slices.Concat(above(given), above(whole), []string{whole}) {
		info, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		if info.IsDir() && !a.mayPass(info) {
			return dir, nil
		}
	}
	return "", nil
}

// above returns the folders above a path, from the root down.
func above(path string) []string {
	dir := filepath.Dir(path)
	if dir == path {
		return nil
	}
	return append(above(dir), dir)
}
