// Package pgcopy runs PostgreSQL's own pg_dump and pg_restore on one tenant's database, and knows what their
// failures mean. Package postgres makes the logins that they connect with, and decides which database may be
// copied where, and when.
//
// Hazard: a dump and a restore run tenants' code (views, functions, index expressions, triggers) with all
// rights of the login that they connect with. SET ROLE is no protection: that code can undo it. So each copy
// has a login of its own, which is a member of the database's owner role and of nothing else: that code can
// do no more than the database's users can. The broker's login, whose keepers may change every role, opens no
// tenant's database for a copy.
package pgcopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
)

// A Login is the login of a copy in the database that the copy reads or writes, and the role that owns what is
// in there. The password is valid for one copy.
type Login struct {
	secret.Holder
	Database, Owner, Name, Password string
}

// Programs are pg_dump and pg_restore of the same version.
type Programs struct {
	bin string
	// Major is the major version of the programs: they cannot read a server of a later version.
	Major int
}

// Find looks for the programs in the folder bin, or in PATH if bin is empty.
func Find(ctx context.Context, bin string) (*Programs, error) {
	none := func(err error) error {
		return &advice.Error{Name: "pg_dump", What: "cannot be run",
			Remedy: "install PostgreSQL's programs (`make postgres`), or add their folder to PATH", Cause: err}
	}
	if bin == "" {
		path, err := exec.LookPath("pg_dump")
		if err != nil {
			return nil, none(err)
		}
		bin = filepath.Dir(path)
	}
	p := &Programs{bin: bin}
	for _, name := range []string{"pg_dump", "pg_restore"} {
		said, err := exec.CommandContext(ctx, filepath.Join(bin, name), "--version").Output()
		if err != nil {
			return nil, none(err)
		}
		if p.Major = pgconfig.Major(string(said)); p.Major == 0 {
			return nil, none(fmt.Errorf("%s says no version", name))
		}
	}
	return p, nil
}

// Dump writes a snapshot of a database in pg_dump's custom format, by a login that only reads. Plain turns
// compression off.
func (p *Programs) Dump(ctx context.Context, a hosted.Access, l Login, plain bool, to io.Writer) error {
	args := []string{"--format=custom", "--role=" + l.Owner, "--no-password", "--no-tablespaces", "--no-security-labels",
		"--no-publications",
		"--no-subscriptions", "--lock-wait-timeout=60000"}
	if plain {
		args = append(args, "--compress=0")
	}
	return p.run(ctx, "pg_dump", args, a, l, nil, to)
}

// Restore fills an empty database with what Dump has written. The owner role then owns everything in it, and
// rights from the source database are not granted. It stops at the first thing that cannot be restored.
func (p *Programs) Restore(ctx context.Context, a hosted.Access, l Login, from io.Reader) error {
	return p.run(ctx, "pg_restore", []string{"--dbname=" + l.Database, "--role=" + l.Owner, "--no-password", "--exit-on-error",
		"--no-owner",
		"--no-privileges", "--no-tablespaces", "--no-security-labels", "--no-publications",
		"--no-subscriptions"}, a, l, from, nil)
}

// mostSaid is how much of a program's messages is kept, in bytes.
const mostSaid = 64 << 10

// endWithin is how long a killed program may take to end.
const endWithin = 5 * time.Second

func (p *Programs) run(
	ctx context.Context, name string, args []string, a hosted.Access, l Login, from io.Reader, to io.Writer,
) error {
	dir, err := os.MkdirTemp("", "longshore-copy-") // mode 0700
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env, err := access(a, l, dir)
	if err != nil {
		return err
	}
	said := &head{most: mostSaid}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, env, from, to, said
	cmd.WaitDelay = endWithin
	cmd.SysProcAttr = attributes()
	runtime.LockOSThread() // Linux kills the program when the thread that started it ends
	defer runtime.UnlockOSThread()
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return meant(name, said.String(), err)
	}
	return nil
}

// access returns the environment that a program connects with, and writes what it refers to into a folder. The
// password is in a file that only this user may read, because everybody can see a program's arguments.
func access(a hosted.Access, l Login, dir string) (env []string, err error) {
	pass := filepath.Join(dir, "pass")
	if err := os.WriteFile(pass, []byte("*:*:*:*:"+l.Password+"\n"), 0o600); err != nil {
		return nil, err
	}
	env = []string{
		"PGHOST=" + a.Host, "PGPORT=" + strconv.Itoa(a.Port), "PGUSER=" + l.Name, "PGDATABASE=" + l.Database,
		"PGPASSFILE=" + pass,
		"PGSSLMODE=" + a.TLS.String(), "PGCONNECT_TIMEOUT=10", "PGAPPNAME=longshore copy",
		"PGOPTIONS=-c statement_timeout=0 -c idle_in_transaction_session_timeout=0 -c search_path=pg_catalog",
		"PGSERVICEFILE=" + os.DevNull, "HOME=" + dir, "LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin",
	}
	if a.CA != "" {
		ca := filepath.Join(dir, "ca")
		if err := os.WriteFile(ca, []byte(a.CA), 0o600); err != nil {
			return nil, err
		}
		env = append(env, "PGSSLROOTCERT="+ca)
	} else if a.TLS == hosted.TLSVerify {
		env = append(env, "PGSSLROOTCERT=system")
	}
	for _, name := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

// A head keeps the first most bytes that are written to it.
type head struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (h *head) Write(b []byte) (int, error) {
	_, _ = h.Buffer.Write(b[:min(len(b), max(0, h.most-h.Len()))])
	return len(b), nil
}

// A Problem tells a user why a database cannot be copied. It reveals neither data nor internals.
type Problem struct {
	// Reason is a sentence that says what to do.
	Reason string
	// Passing says that another attempt may succeed.
	Passing bool
	cause   error
}

func (p *Problem) Error() string { return p.Reason }

// Unwrap returns the error that the program exited with.
func (p *Problem) Unwrap() error { return p.cause }

const forcedSecurity = "A table forces row security on its owner too, and cannot be copied. " +
	"Alter it with NO FORCE ROW LEVEL SECURITY first."

// reasons maps messages of the programs to their meanings. The messages themselves may contain data, so none
// is passed on.
var reasons = []struct {
	says    string
	passing bool
	reason  string
}{
	{"row-level security", false, forcedSecurity},
	{"row security", false, forcedSecurity},
	{"No space left", true, "The server has no room left. Ask the operator of the service."},
	{"could not extend file", true, "The server has no room left. Ask the operator of the service."},
	{"too many connections", true, "The database has no connection left. Close some."},
	{"remaining connection slots", true, "The server has no connection left. Try again later."},
	{"server closed the connection", true, "The connection to the server broke off. Try again."},
	{"terminating connection", true, "The connection to the server broke off. Try again."},
	{"connection to server", true, "The server was not reached. Try again later."},
	{"could not obtain lock", true, "Somebody has held a lock on a table for a long time. End that transaction, and try again."},
	{"lock timeout", true, "Somebody has held a lock on a table for a long time. End that transaction, and try again."},
	{"server version mismatch", false, "pg_dump is older than the server. Name the folder of the server's own programs, or of " +
		"later ones, in LONGSHORE_POSTGRES_BIN, and start the broker again."},
	{"create extension", false, "It has an extension that cannot be made by users here. Drop it, or ask the operator of the " +
		"service."},
	{"is not available", false, "It has an extension that cannot be made by users here. Drop it, or ask the operator of the " +
		"service."},
	{"permission denied", false, "It holds something that its owner role may not read or make: something of the server's " +
		"superuser, or of a login that has left the owner's role. Give it to the owner role, or drop it."},
	{"must be owner", false, "It holds something that does not belong to its owner role. Give it to the owner role, or drop it."},
}

// meant returns the meaning of a program's failure.
func meant(name, said string, err error) error {
	cause := fmt.Errorf("%s: %w", name, err)
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return &Problem{"It cannot be copied: the operator's " + name + " does not run. Ask the operator of the service.", false,
			cause}
	}
	for _, r := range reasons {
		if strings.Contains(said, r.says) {
			return &Problem{r.reason, r.passing, cause}
		}
	}
	return &Problem{"Something in it cannot be copied. Try pg_dump and pg_restore yourself: they say what it is.", false, cause}
}
