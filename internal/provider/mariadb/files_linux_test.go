package mariadb_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
)

// withoutFiles has the server's program open no file more than it has.
func (b *bench) withoutFiles() {
	b.t.Helper()
	raw := expect.Get(os.ReadFile(b.text("SELECT @@pid_file")))(b.t)
	pid := expect.Get(strconv.Atoi(strings.TrimSpace(string(raw))))(b.t)
	unused := 0
	for expect.Err(os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, unused))) == nil {
		unused++
	}
	limit := syscall.Rlimit{Cur: uint64(unused), Max: uint64(unused)}
	_, _, failed := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if failed != 0 {
		b.t.Fatal(failed)
	}
}

// One tenant holds all files that the server may open. What the server then says is not there is not taken for gone; the
// operator learns what to do; and the end of the tenant's binding frees them.
func TestOpenFiles(t *testing.T) {
	t.Parallel()
	b := newKeepingBench(t, "--table-open-cache=10")
	in := b.Provisioned("attacker")
	binding, _, db := b.bound(in, "b", "")
	c := expect.Get(db.Conn(t.Context()))(t)
	var locks []string
	for i := range 60 {
		exec(t, c, fmt.Sprintf("CREATE TABLE t%d (a INT) ENGINE=MyISAM", i))
		locks = append(locks, fmt.Sprintf("t%d WRITE", i))
	}
	own := b.access.Database
	b.server.Root(t, "FLUSH TABLES "+own+".brokers, "+own+".things") // as others do, who use many tables
	exec(t, c, "LOCK TABLES "+strings.Join(locks, ", "))
	b.withoutFiles()
	page, _, err := b.P.List(t.Context(), "")
	if len(page) > 0 {
		t.Fatal("the files are not used up")
	}
	providertest.Troubled(t, "an inventory of a server without files", target.Full, err)
	_, _, err = b.P.Survey(t.Context(), b.Target.Name)
	providertest.Troubled(t, "a look at a server without files", target.Full, err)
	_, err = b.P.Provision(t.Context(), b.Instance("neighbour"))
	providertest.Troubled(t, "an operation on a server without files", target.Full, err)
	expect.Says(t, "what the operator reads", err.Error(), "open_files_limit")
	b.Unbind(binding)
	b.live(binding)
	b.Deprovision(in)
}
