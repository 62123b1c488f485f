// Package pgserver runs a PostgreSQL server of the broker's own: it finds the programs, sets up a folder for
// the data, starts the server there, takes over a server that has outlived its broker, and stops it. It makes
// the broker's login, which is no superuser. Backups connect as the superuser, through a Unix socket in a
// folder that no other user may enter. The package knows nothing of instances and bindings: the provider
// makes those, over the network as on any server.
package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
)

const (
	// Superuser is the owner of the server. It has no password.
	Superuser = "postgres"
	// Loopback is the only address that the server listens on.
	Loopback = "127.0.0.1"

	fileAccess = "hba.conf"
	fileUsers  = "ident.conf"
	filePID    = "postmaster.pid"
	// lookEvery is the pause between two attempts to reach the server.
	lookEvery = 20 * time.Millisecond
)

// A Cluster is the programs, the files and the address of one server. Cluster is PostgreSQL's own word for
// that.
type Cluster struct {
	Bin     string // the folder of programs
	Data    string
	Sockets string // the folder of the superuser's socket
	Port    int
	Account Account
	// Settings are additional settings of the server, as name=value.
	Settings []string
}

// Init makes the data folder. The account must be able to write to the data folder, or to the folder above.
// The superuser has no password.
func (c Cluster) Init(ctx context.Context, flags ...string) error {
	args := append([]string{
		"--pgdata=" + c.Data, "--username=" + Superuser, "--encoding=UTF8", "--auth-local=peer", "--auth-host=scram-sha-256",
	}, flags...)
	cmd := c.command(ctx, "initdb", args...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, faults(said))
	}
	return nil
}

// access says who may connect: the superuser through the socket, as the server's account or root; everybody
// else over the network, with a password.
const access = `local   all ` + Superuser + `       peer map=longshore
local   all all            reject
host    all ` + Superuser + ` all   reject
host    all all 127.0.0.1/32 scram-sha-256
host    all all ::1/128 scram-sha-256
`

// WriteAccess writes the files that say who may connect, beside the data folder.
func (c Cluster) WriteAccess() error {
	owner, err := c.Account.name()
	if err != nil {
		return err
	}
	users := fmt.Sprintf("longshore %q %[2]s\nlongshore root %[2]s\n", owner, Superuser)
	return errors.Join(c.write(fileAccess, access), c.write(fileUsers, users))
}

// write replaces a file beside the data folder atomically, and lets the account read it. It writes nothing
// into the account's own folders: there, the account could have made the file a link to a file of root's.
func (c Cluster) write(name, text string) error {
	const heading = "# Written at each start of the broker: changes are lost.\n"
	path := c.beside(name)
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(heading+text), 0o640); err != nil {
		return err
	}
	// The umask may have taken the right to read from the group.
	return errors.Join(os.Chmod(path+".new", 0o640), c.Account.giveGroup(path+".new"), os.Rename(path+".new", path))
}

func (c Cluster) beside(name string) string { return filepath.Join(filepath.Dir(c.Data), name) }

// Serve returns the command that runs the server.
func (c Cluster) Serve() *exec.Cmd {
	settings := append([]string{
		"listen_addresses=" + Loopback,
		"port=" + strconv.Itoa(c.Port),
		"unix_socket_directories=" + c.Sockets,
		"unix_socket_permissions=0700",
		"hba_file=" + c.beside(fileAccess),
		"ident_file=" + c.beside(fileUsers),
		"password_encryption=scram-sha-256",
	}, c.Settings...)
	args := []string{"-D", c.Data}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return c.command(context.Background(), "postgres", args...)
}

// command returns the command that runs a program as the account. From this process's environment, it keeps
// only the variables that locate libraries and temporary files: others would change what PostgreSQL does.
func (c Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, name), args...)
	cmd.Dir = filepath.Dir(c.Data)
	cmd.Env = []string{"PATH=" + c.Bin + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "HOME=" + cmd.Dir}
	for _, name := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"} {
		if value := os.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = attributes(c.Account)
	return cmd
}

// Connect connects as the superuser.
func (c Cluster) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg, err := pgconfig.New(c.Sockets, uint16(c.Port), cmp.Or(database, Superuser), Superuser)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg.ConnConfig)
}

// Ready waits until the server lets its superuser in, or until its process has ended. If the context ends before, the
// error is what a server that recovers said last, even if a later attempt got no answer in time.
func (c Cluster) Ready(ctx context.Context, pid int) error {
	for said := error(nil); ; {
		conn, err := c.Connect(ctx, "")
		if err == nil {
			return conn.Close(ctx)
		}
		if _, answered := errors.AsType[*pgconn.PgError](err); answered || !recovers(said) {
			said = err
		}
		if !alive(pid) {
			return errors.New("it has ended")
		}
		if waiting.For(ctx, lookEvery) != nil {
			return said
		}
	}
}

// recovers reports whether a server has said that it starts, which after a crash takes as long as there are changes to
// make again. A server that is ended meanwhile begins its recovery anew. A server that is shutting down gives the same
// code (cannot_connect_now), and its message is in English, the language of every folder that the broker sets up.
func recovers(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "57P03" && !strings.Contains(e.Message, "shutting down")
}

// PID returns the server's process id from the server's own file; 0 if the file has none.
func (c Cluster) PID() int {
	raw, _ := os.ReadFile(filepath.Join(c.Data, filePID))
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, _ := strconv.ParseUint(strings.TrimSpace(first), 10, 31)
	return int(pid)
}

// Stop ends a server's process and waits until it is gone: first by a fast shutdown, which ends sessions and
// loses nothing; after the grace by an immediate shutdown, which loses nothing either but makes the next
// start recover; and at last by SIGKILL.
func Stop(ctx context.Context, pid int, grace time.Duration) error {
	if pid == 0 || !alive(pid) {
		return nil
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		if err := signal(pid, s); err != nil {
			return nil // it has ended meanwhile
		}
		bounded, cancel := context.WithTimeout(ctx, grace)
		err := Gone(bounded, pid)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not end", pid)
}

// Gone waits until no process has the given id.
func Gone(ctx context.Context, pid int) error {
	for alive(pid) {
		if err := waiting.For(ctx, lookEvery); err != nil {
			return err
		}
	}
	return nil
}

// faults returns the lines in which PostgreSQL's programs say why they fail; if there are none, the last
// lines.
func faults(said []byte) string {
	var lines []string
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "FATAL:") || strings.Contains(line, "PANIC:") || strings.Contains(line, " error:") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if lines == nil {
		return end(said)
	}
	return strings.Join(lines, "; ")
}

// end returns the last lines of a program's output.
func end(said []byte) string {
	const lines = 10
	all := strings.Split(strings.TrimSpace(string(said)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
