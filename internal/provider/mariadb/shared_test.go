package mariadb_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/mariadb/mariadbtest"
)

// newKeepingBench is a bench on a server of its own, with these settings, whose plan
// retains what is deleted and limits nothing.
func newKeepingBench(t testing.TB, settings ...string) *bench {
	t.Helper()
	b := newOwnBench(t, mariadbtest.New(t, settings...))
	b.plan = `{"retain_days":7}`
	return b
}

// live takes an instance and a binding through all that can happen to them, beside an
// attacker whose binding ends last but one.
func (b *bench) live(attacker provider.Binding) {
	b.t.Helper()
	in := b.instance("a neighbour's é中'\\\"?")
	must(b, b.p.Provision, in)
	binding := b.binding(in, "b ?\\'", "")
	if grant := must(b, b.p.Bind, binding).Grant; !opens(b.t, grant) {
		b.t.Error("a neighbour's binding does not open")
	}
	in.Operation, in.Former = b.operation(provider.KindUpdate), in.Snapshot
	in.Snapshot = json.RawMessage(`{"connection_limit":7,"retain_days":7}`)
	must(b, b.p.Update, in)
	holding := provider.Holding{Tags: provider.BindingTagsOf(binding), Target: b.target}
	for _, step := range []func() error{
		func() error { return b.p.Quarantine(b.t.Context(), holding) }, func() error { return b.p.Release(b.t.Context(), holding) },
	} {
		if err := step(); err != nil {
			b.t.Error(err)
		}
	}
	must(b, b.p.Unbind, binding)
	kept := b.retained(in)
	again := b.instance("again")
	again.Source = b.from(in, kept)
	must(b, b.p.Provision, again)
	again.Source = nil
	must(b, b.p.Unbind, attacker)
	must(b, b.p.Deprovision, again)
}

// Prepared statements are counted for the whole server. One tenant prepares as many as
// there may be, and everybody's operations go on, the end of its own binding too.
func TestPreparedStatements(t *testing.T) {
	b := newKeepingBench(t, "--max-prepared-stmt-count=100")
	in := b.instance("attacker")
	must(b, b.p.Provision, in)
	binding, _, db := b.bound(in, "b", "")
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; number(t, err) == 0 && n < 200; n++ {
		_, err = c.ExecContext(t.Context(), fmt.Sprintf("PREPARE s%d FROM 'SELECT 1'", n))
	}
	if n := number(t, err); n != 1461 {
		t.Fatalf("the statements are not used up: %v", err)
	}
	b.live(binding)
	must(b, b.p.Deprovision, in)
}

// The broker's values reach the server as they are, whatever letters the server takes
// its clients to write in.
func TestLettersOfTheServer(t *testing.T) {
	b := newKeepingBench(t, "--skip-character-set-client-handshake", "--character-set-server=gbk")
	in := b.instance("attacker")
	must(b, b.p.Provision, in)
	binding, _, _ := b.bound(in, "b", "")
	b.live(binding)
}
