package pgserver

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/secret"
)

const (
	fileRecord  = "server.json"
	dirData     = "data"
	dirSockets  = "socket"
	dirLog      = "log"
	fileVersion = "PG_VERSION"

	recordFormat = 1
	// longestSockets is the longest path of a socket's folder that works on every system.
	longestSockets = 88
)

// A record is kept in a server's folder, beside the data. The members that appear in credentials never
// change.
type record struct {
	secret.Holder
	Format int `json:"format"`
	Port   int `json:"port"`
	// Account is the account that root starts the server as; zero if a user other than root made the folder.
	Account Account `json:"account,omitzero"`
	// Sockets replaces the socket folder in the server's folder, if the path of that one is too long.
	Sockets  string `json:"sockets,omitempty"`
	User     string `json:"user"`
	Database string `json:"database"`
	Password string `json:"password"`
}

// folderName names the server's folder in an error.
func folderName(dir string) string { return fmt.Sprintf("folder %q of the PostgreSQL server", dir) }

// readRecord reads the record of a folder; it returns the zero record if the folder has none.
func readRecord(dir string) (r record, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, fileRecord))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil && json.Unmarshal(raw, &r) != nil {
		err = errors.New("it is no JSON of ours")
	}
	if err == nil && r.Format > recordFormat {
		return r, advice.For(folderName(dir), "was written by a newer version of this program", "run that version or a later one")
	}
	if err == nil && (r.Format != recordFormat || r.Port == 0 || r.User == "" || r.Password == "") {
		err = errors.New("it is not whole")
	}
	if err != nil {
		return r, &advice.Error{Name: folderName(dir), What: "has a " + fileRecord + " that cannot be read",
			Remedy: "allow it to be read, or restore it from a backup", Cause: err}
	}
	return r, nil
}

func (r record) write(dir string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fileRecord)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// newRecord returns the first record of a folder. A folder that has lost its record keeps its port, if the
// server's note of its last start still names it.
func newRecord(dir string, account Account) (record, error) {
	port := lastPort(dir)
	var err error
	if port == 0 {
		port, err = drawPort()
	}
	return record{
		Format: recordFormat, Port: port, Account: account, User: "longshore", Database: "longshore", Password: rand.Text(),
	}, err
}

// lastPort returns the port of the server's last start; 0 if it is unknown.
func lastPort(dir string) int {
	raw, _ := os.ReadFile(filepath.Join(dir, dirData, "postmaster.opts"))
	_, after, _ := strings.Cut(string(raw), `"port=`)
	digits, _, _ := strings.Cut(after, `"`)
	port, _ := strconv.Atoi(digits)
	return port
}

// Ports are drawn from below the range that systems use for outgoing connections: so no such connection takes
// the server's port while the server is down.
const (
	firstPort = 15_433
	ports     = 15_000
)

func drawPort() (int, error) {
	const tries = 100
	var err error
	for range tries {
		n, _ := rand.Int(rand.Reader, big.NewInt(ports)) // never fails: see crypto/rand
		port := firstPort + int(n.Int64())
		if err = isFree(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port is free: %w", err)
}

// isFree returns nil if a server can listen on a port.
func isFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(Loopback, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
