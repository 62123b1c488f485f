package valkey_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// A world is a provider on a server of its own or a shared one.
type world struct {
	t      *testing.T
	server *valkeytest.Server
	p      *valkey.Provider
	clock  *providertest.Clock
	broker string
	target provider.Target
}

func newWorld(t *testing.T, s *valkeytest.Server) *world {
	t.Helper()
	w := &world{t: t, server: s, clock: providertest.NewClock(start), broker: "broker-" + rand.Text()}
	w.p = w.open(s.Access())
	return w
}

func (w *world) open(a hosted.Access) *valkey.Provider { return w.pooled(a, 0) }

func (w *world) pooled(a hosted.Access, pool int) *valkey.Provider {
	p := valkey.New(valkey.Options{
		Broker: w.broker, Accesses: hosted.Accesses{hosted.DefaultTarget: a}, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler), Pool: pool,
	})
	w.t.Cleanup(p.Close)
	return p
}

func (w *world) instance(id string) provider.Instance {
	return provider.Instance{
		Broker: w.broker, Platform: "p", ID: id, Incarnation: "incarnation-of-" + id, Target: w.target, PlanID: "plan",
		Operation: provider.Operation{ID: rand.Text()},
	}
}

func (w *world) binding(instance, id string) provider.Binding {
	return provider.Binding{Instance: w.instance(instance), ID: id, Incarnation: "incarnation-of-" + id,
		Secret: []byte(fmt.Sprintf("a secret of %032s", id))}
}

// drive makes the steps of an operation, and records what they answer.
func (w *world) drive(in *provider.Instance, step func() (provider.Status, error)) provider.Status {
	w.t.Helper()
	return providertest.Must(w.t, w.clock, func(context.Context) (provider.Status, error) {
		st, err := step()
		providertest.Keep(in, st, err)
		if err == nil && st.Target != nil {
			w.target = *st.Target
		}
		return st, err
	})
}

func (w *world) provision(id string) {
	w.t.Helper()
	in := w.instance(id)
	w.drive(&in, func() (provider.Status, error) { return w.p.Provision(w.t.Context(), in) })
}

func (w *world) deprovision(id string) {
	w.t.Helper()
	in := w.instance(id)
	w.drive(&in, func() (provider.Status, error) { return w.p.Deprovision(w.t.Context(), in) })
}

// An app is what a binding gives one.
type app struct{ user, password, prefix string }

func (w *world) bind(instance, id, parameters string) app {
	w.t.Helper()
	b := w.binding(instance, id)
	if parameters != "" {
		b.Parameters = json.RawMessage(parameters)
	}
	g := w.drive(&b.Instance, func() (provider.Status, error) { return w.p.Bind(w.t.Context(), b) }).Grant.Credentials
	return app{g["username"].(string), g["password"].(string), g["prefix"].(string)}
}

func (w *world) unbind(instance, id string) {
	w.t.Helper()
	b := w.binding(instance, id)
	w.drive(&b.Instance, func() (provider.Status, error) { return w.p.Unbind(w.t.Context(), b) })
}

func (w *world) login(a app) *valkeytest.Session {
	w.t.Helper()
	return expect.Get(w.server.Login(w.t, a.user, a.password))(w.t)
}

// refusedFor is the first word of what the server refused a command with; empty if it did not.
func refusedFor(s *valkeytest.Session, command ...string) string {
	_, err := s.Do(command...)
	if a, ok := errors.AsType[valkeytest.Answer](err); ok {
		code, _, _ := strings.Cut(a.Error(), " ")
		return code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// attacks are commands of one app against another's keys and channels, the server
// and the broker. MINE and THEIRS stand for the prefixes.
var attacks = []string{
	"GET THEIRSkey", "SET THEIRSkey x", "MGET MINEkey THEIRSkey", "DEL THEIRSkey", "UNLINK THEIRSkey", "EXISTS THEIRSkey",
	"DUMP THEIRSkey", "TYPE THEIRSkey", "RENAME THEIRSkey MINEkey2", "RENAME MINEkey THEIRSkey2", "OBJECT ENCODING THEIRSkey",
	"MEMORY USAGE THEIRSkey", "TOUCH THEIRSkey", "EXPIRE THEIRSkey 1", "WATCH THEIRSkey", "LCS MINEkey THEIRSkey",
	"BITOP NOT MINEkey2 THEIRSkey", "SUNIONSTORE MINEset THEIRSset", "ZUNIONSTORE MINEz 1 THEIRSz", "LMPOP 1 THEIRSlist LEFT",
	"BLMPOP 1 1 THEIRSlist LEFT", "BLPOP THEIRSlist 1", "SMOVE MINEset THEIRSset x", "LMOVE THEIRSlist MINElist LEFT LEFT",
	"GEORADIUS MINEgeo 0 0 1 m STORE THEIRSkey2", "GEOSEARCHSTORE MINEgeo THEIRSgeo FROMLONLAT 0 0 BYRADIUS 1 m",
	"XREAD STREAMS THEIRSstream 0", "XADD THEIRSstream * a b", "PFMERGE MINEhll THEIRShll", "MSETEX 1 THEIRSkey x",
	"GETEX THEIRSkey PERSIST", "COPY MINEkey THEIRSkey2", "COPY THEIRSkey MINEkey2", "COPY MINEkey MINEkey2 DB 1",
	"MOVE " + "MINEkey 1", "SORT MINElist BY THEIRS* GET THEIRS*", "SORT_RO MINElist BY nosort GET THEIRSkey",
	"SORT MINElist STORE " + "THEIRSkey2", "SCAN 0", "SCAN 0 MATCH THEIRS*", "CLUSTERSCAN 0", "KEYS *", "RANDOMKEY", "DBSIZE",
	"SELECT 1", "SWAPDB 0 1", "FLUSHDB", "FLUSHALL", "EVAL return 0", "EVAL_RO return 0", "SCRIPT FLUSH", "SCRIPT KILL",
	"FUNCTION LIST", "FUNCTION FLUSH", "FCALL f 0", "PUBLISH THEIRSchannel x", "SPUBLISH THEIRSchannel x",
	"SUBSCRIBE THEIRSchannel", "SSUBSCRIBE THEIRSchannel", "PSUBSCRIBE *", "PSUBSCRIBE THEIRS*", "PSUBSCRIBE {lsv*",
	"SUBSCRIBE __keyevent@0__:set", "PSUBSCRIBE __key*__:*", "PUBSUB CHANNELS", "PUBSUB NUMSUB THEIRSchannel", "CLIENT LIST",
	"CLIENT KILL TYPE normal SKIPME yes", "CLIENT TRACKING ON BCAST", "CLIENT TRACKING ON", "CLIENT PAUSE 1", "CLIENT UNBLOCK 1",
	"CLIENT NO-EVICT on", "ACL LIST", "ACL USERS", "ACL WHOAMI", "ACL SETUSER MYSELF ~*", "ACL SAVE", "ACL GETUSER longshore",
	"CONFIG GET requirepass", "CONFIG SET maxmemory 1", "INFO", "MONITOR", "SLOWLOG GET", "COMMANDLOG GET 1 slow",
	"LATENCY LATEST", "WAIT 0 0", "ROLE", "REPLICAOF no one", "MIGRATE 127.0.0.1 1 MINEkey 0 1", "RESTORE MINEkey2 0 x", "SAVE",
	"BGSAVE", "SHUTDOWN NOSAVE", "MODULE LIST", "CLUSTER INFO", "XREADGROUP GROUP STREAMS STREAMS STREAMS THEIRSstream >",
	"XREAD BLOCK 1 STREAMS MINEx THEIRSstream 0 0", "ZRANGESTORE MINEz THEIRSz 0 1",
	"GEORADIUS MINEgeo 0 0 1 m STORE MINEx STORE THEIRSkey2", "GEORADIUSBYMEMBER MINEgeo a 1 m STOREDIST THEIRSkey2",
	"SINTERCARD 2 MINEset THEIRSset LIMIT 1", "MSETEX 2 MINEkey x THEIRSkey y", "DELIFEQ THEIRSkey secret",
	"BZMPOP 1 1 THEIRSz MIN", "PFMERGE THEIRSkey2", "LOLWUT", "MEMORY STATS", "PSYNC ? -1", "OBJECT FREQ THEIRSkey",
}

// An app reaches nothing but what begins with its prefix. Each attack is one that
// the server lets a user make who has all rights.
func TestAnAppReachesNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("mine")
	w.provision("theirs")
	mine, theirs := w.bind("mine", "m", ""), w.bind("theirs", "t", "")
	victim := w.login(theirs)
	for _, command := range []string{
		"SET key secret", "SADD set a", "ZADD z 1 a", "RPUSH list a", "XADD stream 1-1 a b", "GEOADD geo 1 1 a", "PFADD hll a",
	} {
		words := strings.Fields(command)
		words[1] = theirs.prefix + words[1]
		must(t, victim, words...)
	}
	root := w.server.Root(t)
	must(t, root, "ACL", "SETUSER", "weak", "reset", "on", "nopass", "~*", "&*", "+@all")
	before := must(t, root, "ACL", "LIST")
	for _, attack := range attacks {
		words := strings.Fields(strings.NewReplacer("MINE", mine.prefix, "THEIRS", theirs.prefix, "MYSELF",
			mine.user).Replace(attack))
		if words[0] == "EVAL" || words[0] == "EVAL_RO" {
			words = []string{words[0], "return redis.call('GET', KEYS[1])", "1", theirs.prefix + "key"}
		}
		session := w.login(mine)
		must(t, session, "SET", mine.prefix+"key", "1")
		expect.Same(t, attack+": answered", "NOPERM", refusedFor(session, words...))
		if dryRun(root, "weak", words) != "OK" {
			t.Errorf("%s is refused to everybody: the attack proves nothing", attack)
		}
	}
	expect.Same(t, "the victim's key holds", "secret", must(t, victim, "GET", theirs.prefix+"key"))
	if after := must(t, root, "ACL", "LIST"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("an attack changed the users")
	}
}

// keyless are the commands that apps may give and that name no key.
var keyless = []string{
	"multi", "exec", "discard", "unwatch", "ping", "echo", "select",
	"auth", "hello", "quit", "reset", "object|help", "xgroup|help", "xinfo|help",
	"subscribe", "unsubscribe", "psubscribe", "punsubscribe", "publish", "ssubscribe", "sunsubscribe", "spublish",
	"client|id", "client|getname", "client|setname", "client|setinfo", "client|info", "client|no-touch",
	"command", "command|count", "command|docs", "command|getkeys", "command|getkeysandflags", "command|help", "command|info", "command|list",
}

// Each command that an app may give refuses the keys of others, wherever among its words they stand.
func TestNoCommandTakesTheKeysOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("mine")
	mine := w.bind("mine", "m", "")
	root, session := w.server.Root(t), w.login(mine)
	must(t, root, "ACL", "SETUSER", mine.user+"-weak", "reset", "on", "nopass", "~*", "+@all")
	allowed, reached := 0, 0
	for _, one := range must(t, root, "COMMAND", "LIST").([]any) {
		command := one.(string)
		if slices.Contains(keyless, command) {
			continue
		}
		refused := refusedFor(session, strings.Split(command, "|")...)
		if refused == "NOPERM" || refused == "" {
			continue
		}
		allowed++
		works := false
		for n := 1; n <= 4; n++ {
			for at := range 3*n + 1 { // a number may be how many keys follow, which is right, wrong or none
				words := append(strings.Split(command, "|"), slices.Repeat([]string{"foreign"}, n)...)
				if at < 3*n {
					words[len(words)-1-at/3] = []string{"1", "0", "99"}[at%3]
				}
				if got := refusedFor(session, words...); got != "NOPERM" && got != "ERR" {
					t.Errorf("%v: answered %q, want it refused", words, got)
				}
				works = works || dryRun(root, mine.user, words) != "OK" && dryRun(root, mine.user+"-weak", words) == "OK"
			}
		}
		if works {
			reached++
		}
	}
	if allowed < 150 || reached < 120 {
		t.Errorf("of %d allowed commands, %d are refused for the key alone: the test proves little", allowed, reached)
	}
	if got := must(t, root, "DBSIZE"); got != int64(0) {
		t.Errorf("there are %v keys that nobody was to write", got)
	}
}

// dryRun is what the server says of a command that a user would give.
func dryRun(root *valkeytest.Session, user string, command []string) any {
	answer, err := root.Do(append([]string{"ACL", "DRYRUN", user}, command...)...)
	if err != nil {
		return err.Error()
	}
	return answer
}

// Under the prefix, apps can use all commands that they need.
func TestWhatAppsNeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.Start(t, "one"))
	w.provision("i")
	a, b, reader := w.bind("i", "a", ""), w.bind("i", "b", `{"role": "read_write"}`), w.bind("i", "r", `{"role": "read_only"}`)
	writer, other, reads := w.login(a), w.login(b), w.login(reader)
	key := a.prefix + "k"
	for _, command := range [][]string{
		{"SELECT", "0"}, {"SET", key, "1", "EX", "100"}, {"INCR", key}, {"HSET", key + "h", "f", "v"}, {"LPUSH", key + "l", "x"},
		{"SADD", key + "s", "x"}, {"ZADD", key + "z", "1", "x"}, {"XADD", key + "x", "*", "f", "v"},
		{"XGROUP", "CREATE", key + "x", "g", "0"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", key + "x", ">"},
		{"PFADD", key + "p", "x"}, {"PFCOUNT", key + "p", key + "q"}, {"SETBIT", key + "b", "1", "1"},
		{"RENAME", key + "s", key + "t"}, {"TTL", key}, {"CLIENT", "SETNAME", "app"}, {"CLIENT", "SETINFO", "LIB-NAME", "x"},
		{"CLIENT", "ID"}, {"COMMAND", "COUNT"}, {"MULTI"}, {"SET", key, "2"}, {"EXEC"}, {"PUBLISH", a.prefix + "c", "x"},
		{"BLPOP", key + "l", "1"},
	} {
		must(t, writer, command...)
	}
	if a.prefix != b.prefix || must(t, other, "GET", key) != "2" || must(t, reads, "GET", key) != "2" {
		t.Error("the bindings of one instance do not share its keys")
	}
	must(t, other, "SUBSCRIBE", a.prefix+"c")
	must(t, writer, "PUBLISH", a.prefix+"c", "hello")
	if heard, err := other.Read(); err != nil || fmt.Sprint(heard) != fmt.Sprint([]any{"message", a.prefix + "c", "hello"}) {
		t.Errorf("heard %v (error %v)", heard, err)
	}
	for _, command := range [][]string{
		{"SET", key, "x"}, {"GETDEL", key}, {"GETEX", key, "PERSIST"}, {"DEL", key}, {"EXPIRE", key, "1"},
		{"PUBLISH", a.prefix + "c", "x"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", key + "x", ">"},
		{"SUNIONSTORE", key + "u", key + "t"}, {"RENAME", key, key + "2"},
	} {
		expect.Same(t, fmt.Sprintf("a binding that only reads: %v answered", command), "NOPERM", refusedFor(reads, command...))
	}
	w.unbind("i", "a") // the successor's login goes on
	if must(t, w.login(b), "GET", key) != "2" {
		t.Error("after an unbind, the other binding lacks the data")
	}
	in := w.binding("i", "x")
	in.Instance.Target, in.Parameters = w.target, json.RawMessage(`{"role": "read_only +@all ~*"}`)
	if _, err := w.p.Bind(t.Context(), in); err == nil {
		t.Error("a role that does not exist was taken")
	}
	w.deprovision("i")
}

// An unbind ends every session of its user, whatever that is doing.
func TestAnUnbindEndsSessions(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world){
		"Unbind":      func(w *world) { w.unbind("i", "b") },
		"Deprovision": func(w *world) { w.deprovision("i") },
		"Quarantine":  func(w *world) { w.quarantine("b") },
		"Instance's quarantine": func(w *world) {
			w.quarantine("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, valkeytest.Start(t, "one"))
			w.provision("i")
			a := w.bind("i", "b", "")
			key := a.prefix + "key"
			sessions := map[string]*valkeytest.Session{}
			for _, doing := range []string{"idle", "listens", "waits", "in a transaction"} {
				sessions[doing] = w.login(a)
			}
			must(t, sessions["listens"], "SUBSCRIBE", a.prefix+"c")
			must(t, sessions["in a transaction"], "MULTI")
			must(t, sessions["in a transaction"], "SET", key, "queued")
			expect.OK(t, sessions["waits"].Send("BLPOP", a.prefix+"list", "0"))
			w.turnedOff(a, sessions["idle"])
			stop := w.knock(a)
			end(w)
			stop()
			for doing, s := range sessions {
				if doing == "in a transaction" {
					_ = s.Send("EXEC")
				}
				if doing == "idle" {
					_ = s.Send("PING")
				}
				if answer, err := s.Read(); err == nil || errorsIsAnswer(err) {
					t.Errorf("a session that %s goes on: %v %v", doing, answer, err)
				}
			}
			root := w.server.Root(t)
			expect.Never(t, "the server's sessions", must(t, root, "CLIENT", "LIST").(string), "user="+a.user+" ")
			if _, err := w.server.Login(t, a.user, a.password); err == nil {
				t.Error("the password still opens")
			}
			if got := must(t, root, "EXISTS", key); got != int64(0) {
				t.Error("what was queued was done")
			}
		})
	}
}

func errorsIsAnswer(err error) bool {
	_, ok := errors.AsType[valkeytest.Answer](err)
	return ok
}

// turnedOff proves that a session outlives what merely turns its user off.
func (w *world) turnedOff(a app, s *valkeytest.Session) {
	w.t.Helper()
	root := w.server.Root(w.t)
	must(w.t, root, "ACL", "SETUSER", a.user, "off")
	must(w.t, s, "PING")
	must(w.t, root, "ACL", "SETUSER", a.user, "on")
}

// knock logs in again and again until it is stopped.
func (w *world) knock(a app) (stop func()) {
	ended, wg := make(chan struct{}), sync.WaitGroup{}
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					_, _ = w.server.Login(w.t, a.user, a.password) // it stays open as long as the server lets it
				}
			}
		})
	}
	return func() { close(ended); wg.Wait() }
}

func (w *world) quarantine(binding string) {
	w.t.Helper()
	tags := provider.TagsOf(w.instance("i"))
	if binding != "" {
		tags = provider.BindingTagsOf(w.binding("i", binding))
	}
	expect.OK(w.t, w.p.Quarantine(w.t.Context(), provider.Holding{Tags: tags, Target: w.target}))
}

// A binding that is in quarantine by itself stays so when its instance is released.
func TestReleasesAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.Start(t, "one"))
	w.provision("i")
	a, b := w.bind("i", "a", ""), w.bind("i", "b", "")
	w.quarantine("a")
	w.quarantine("")
	in := w.binding("i", "c")
	if _, err := w.p.Bind(t.Context(), in); err == nil {
		t.Error("an instance in quarantine was bound")
	}
	expect.OK(t, w.p.Release(t.Context(), provider.Holding{Tags: provider.TagsOf(w.instance("i")), Target: w.target}))
	if _, err := w.server.Login(t, a.user, a.password); err == nil {
		t.Error("released with its instance: want the binding still in quarantine")
	}
	w.login(b)
	w.deprovision("i")
}

// A deletion takes an instance's keys, all of them, while an app that was never
// unbound goes on writing, and leaves those of others.
func TestADeletionTakesItsOwnKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("mine")
	w.provision("theirs")
	mine, theirs := w.bind("mine", "m", ""), w.bind("theirs", "t", "")
	const keys = 3000
	for _, a := range []app{mine, theirs} {
		s := w.login(a)
		for n := 0; n < keys; n += 500 {
			words := []string{"MSET"}
			for i := range 500 {
				words = append(words, fmt.Sprintf("%skey-%d", a.prefix, n+i), "x")
			}
			must(t, s, words...)
		}
	}
	writer, wrote := w.login(mine), 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ; wrote++ {
			if _, err := writer.Do("SET", fmt.Sprintf("%slate-%d", mine.prefix, wrote), "x"); err != nil {
				return // it was shut out
			}
		}
	}()
	w.deprovision("mine")
	<-done
	root := w.server.Root(t)
	if got := must(t, root, "DBSIZE"); got != int64(keys) {
		t.Errorf("%v keys are left, want the %d of the other instance (%d were written late)", got, keys, wrote)
	}
	if all := must(t, root, "KEYS", mine.prefix+"*").([]any); len(all) > 0 {
		t.Errorf("%d keys of what was deleted", len(all))
	}
}

// A step of a deletion ends in time to remember how far it has come, however slow the server is.
func TestADeletionAtASlowServerGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	root := w.server.Root(t)
	for n := range 100 {
		must(t, root, "SET", fmt.Sprint(n), "x")
	}
	err := valkey.EraseSlowly(t, w.server.Access(), w.instance("i"), 50*time.Millisecond)
	if later, ok := errors.AsType[*hosted.Later](err); !ok || later.Status.State == nil {
		t.Errorf("the step ends with %v, want a state for the next one", err)
	}
}

// No password is anywhere on the server: not in what it is sent, logs, lists or keeps.
func TestNoPasswordIsOnTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t, "commandlog-execution-slower-than 0", "slowlog-max-len 1000"))
	monitor := w.server.Root(t)
	must(t, monitor, "MONITOR")
	w.provision("i")
	a := w.bind("i", "b", "")
	w.login(a)
	_, _ = w.server.Login(t, a.user, a.password+"x")
	root := w.server.Root(t)
	all := map[string]string{
		"the log": w.server.Log(), "the file": w.server.Kept(t), "ACL LOG": fmt.Sprint(must(t, root, "ACL", "LOG")),
		"SLOWLOG": fmt.Sprint(must(t, root, "SLOWLOG", "GET", "1000")), "ACL LIST": fmt.Sprint(must(t, root, "ACL", "LIST")),
		"CLIENT LIST": fmt.Sprint(must(t, root, "CLIENT", "LIST")),
	}
	must(t, root, "ECHO", "the end")
	for !strings.Contains(all["MONITOR"], "the end") {
		line := expect.Get(monitor.Read())(t)
		all["MONITOR"] += fmt.Sprintln(line)
	}
	for where, text := range all {
		expect.Never(t, where, text, a.password)
	}
	for _, where := range []string{"the file", "ACL LIST", "SLOWLOG", "MONITOR"} {
		sees := map[string]string{"SLOWLOG": "SETUSER", "MONITOR": "hello"}[where]
		if !strings.Contains(strings.ToLower(all[where]), strings.ToLower(cmp.Or(sees, a.user))) {
			t.Errorf("%s tells nothing of what was done: the test proves nothing", where)
		}
	}
}

// Nothing is made on a server that is not as it has to be; the operation waits, and the operator reads what to do.
func TestServersThatAreNotAsTheyHaveToBe(t *testing.T) {
	t.Parallel()
	sound := valkeytest.New(t)
	for name, c := range map[string]struct {
		server func() hosted.Access
		says   string
		kind   string // of a trouble; empty for another error
	}{
		"NoFile":  {func() hosted.Access { return valkeytest.Unsound(t).Access() }, "aclfile", ""},
		"Cluster": {func() hosted.Access { return valkeytest.New(t, "cluster-enabled yes").Access() }, "stands alone", ""},
		"Replica": {func() hosted.Access { return valkeytest.New(t, "replicaof 127.0.0.1 1").Access() }, "replica",
			target.ReadOnly},
		"Open": {func() hosted.Access {
			s := valkeytest.New(t)
			must(t, s.Root(t), "ACL", "SETUSER", "default", "on", "nopass")
			return s.Access()
		}, "default user", ""},
		"WrongPassword": {func() hosted.Access {
			a := sound.Access()
			a.Password += "x"
			return a
		}, "refuses the broker's login", target.Login},
		"NoRights": {func() hosted.Access {
			must(t, sound.Root(t), "ACL", "SETUSER", "poor", "on", ">poor", "+ping")
			a := sound.Access()
			a.User, a.Password = "poor", "poor"
			return a
		}, "docs/valkey.md", target.Rights},
		"OursNamedLikeIt": {func() hosted.Access {
			s := valkeytest.New(t)
			a := s.Access()
			must(t, s.Root(t), append([]string{"ACL", "SETUSER", "longshore", "on", ">" + a.Password},
				strings.Fields(valkeytest.BrokerRules)...)...)
			a.User = "longshore"
			return a
		}, "another name", ""},
		"Gone":     {func() hosted.Access { a := sound.Access(); a.Port = 1; return a }, "refused", target.Unreachable},
		"HalfTLS":  {func() hosted.Access { a := sound.Access(); a.TLS = hosted.TLSRequire; return a }, "rediss://", ""},
		"BrokenCA": {func() hosted.Access { a := sound.Access(); a.TLS, a.CA = hosted.TLSVerify, "x"; return a }, "PEM", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, clock: providertest.NewClock(start), broker: "broker-" + rand.Text()}
			a := c.server()
			w.p = w.open(a)
			in := w.instance("i")
			for range 3 {
				st, err := w.p.Provision(t.Context(), in)
				if err == nil && st.Target != nil {
					in.Target = *st.Target
					continue
				}
				_, failed := errors.AsType[*provider.Failure](err)
				trouble, _ := errors.AsType[*target.Trouble](err)
				if c.kind != "" && (trouble == nil || trouble.Kind != c.kind) {
					t.Errorf("error %v, want the trouble %q", err, c.kind)
				}
				if err == nil || failed || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), a.Password) {
					t.Errorf("done %v, error %v; want a passing one with %q, and no password", st.Done, err, c.says)
				}
			}
		})
	}
}

// A server that was killed has all of its users again; one that is full goes on to bind, unbind and delete.
func TestRestartsAndFullServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t, "maxmemory-policy noeviction"))
	w.provision("i")
	kept, gone := w.bind("i", "kept", ""), w.bind("i", "gone", "")
	w.unbind("i", "gone")
	w.server.Restart(t)
	s := w.login(kept)
	if _, err := w.server.Login(t, gone.user, gone.password); err == nil {
		t.Error("what was unbound is back after a restart")
	}
	must(t, s, "SET", kept.prefix+"key", "x")
	must(t, w.server.Root(t), "CONFIG", "SET", "maxmemory", "1")
	expect.Same(t, "the server is not full", "OOM", refusedFor(s, "SET", kept.prefix+"other", "x"))
	w.login(w.bind("i", "another", ""))
	w.unbind("i", "kept")
	w.deprovision("i")
	if page, _, err := w.p.List(t.Context(), ""); err != nil || len(page) > 0 {
		t.Errorf("left: %v (error %v)", page, err)
	}
}

// Pages of several servers follow one another; one that cannot be reached is an error, and the others are listed.
func TestListingSeveralServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.Start(t, "one"))
	w.provision("i")
	down := w.server.Access()
	down.Port = 1
	p := valkey.New(valkey.Options{Broker: w.broker, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler),
		Accesses: hosted.Accesses{
			"a/b": valkeytest.Start(t, "another").Access(), "down": down, hosted.DefaultTarget: w.server.Access(), "zero": down,
		}})
	seen, failures := map[string]bool{}, 0
	for cursor, pages := "", 0; ; pages++ {
		page, next, err := p.List(t.Context(), cursor)
		if err != nil {
			failures++
		}
		for _, h := range page {
			seen[h.Tags.Instance] = true
		}
		if next == "" || pages > 50 {
			break
		}
		cursor = next
	}
	if failures != 2 || !maps.Equal(seen, map[string]bool{"i": true}) {
		t.Errorf("%d failures and %v, want two and the instance", failures, seen)
	}
	w.deprovision("i")
}

// A server behind TLS is verified, by whom its CA names.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := valkeytest.Start(t, "one")
	port, ca := s.TLS(t)
	a := s.Access()
	a.Port, a.TLS = port, hosted.TLSVerify
	w := newWorld(t, s)
	for name, c := range map[string]struct {
		ca, host string
		works    bool
	}{
		"Verified":  {ca, "127.0.0.1", true},
		"NoCA":      {"", "127.0.0.1", false},
		"OtherName": {ca, "localhost", false},
	} {
		a.CA, a.Host = c.ca, c.host
		w.p = w.open(a)
		if _, _, err := w.p.List(t.Context(), ""); (err == nil) != c.works {
			t.Errorf("%s: error %v", name, err)
		}
		if !c.works {
			continue
		}
		w.provision("i")
		b := w.binding("i", "b")
		g := w.drive(&b.Instance, func() (provider.Status, error) { return w.p.Bind(t.Context(), b) }).Grant.Credentials
		if g["tls"] != true || g["ca"] != c.ca || !strings.HasPrefix(g["uri"].(string), "rediss://") {
			t.Error("an app is not told of TLS")
		}
		want := []string{"ca", "database", "host", "password", "port", "prefix", "tls", "type", "uri", "username"}
		if got := slices.Sorted(maps.Keys(g)); !slices.Equal(got, want) || g["type"] != "redis" || g["database"] != 0 {
			t.Errorf("the credentials have %v, of the type %v, for the database %v", got, g["type"], g["database"])
		}
		w.deprovision("i")
	}
}
