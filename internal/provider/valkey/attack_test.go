package valkey_test

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
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
	*providertest.Bench[*valkey.Provider]
	t      *testing.T
	server *valkeytest.Server
}

func newWorld(t *testing.T, s *valkeytest.Server) *world {
	t.Helper()
	clock, broker := providertest.NewClock(start), "broker-"+rand.Text()
	return &world{providertest.NewBench(t, provide(t, broker, clock, s.Access(), 0), clock, broker, ""), t, s}
}

// keeps has the provider keep its connection from now on.
func (w *world) keeps() { w.P = provide(w.t, w.Broker, w.Clock, w.server.Access(), 8) }

// bound makes a binding.
func (w *world) bound(in provider.Instance, id, parameters string) app {
	w.t.Helper()
	b := w.Binding(in, id, parameters)
	a := appOf(w.Bind(b))
	a.Binding = b
	return a
}

func (w *world) login(a app) *valkeytest.Session {
	w.t.Helper()
	return a.login(w.t, w.server)
}

// shut requires that an app cannot log in.
func (w *world) shut(when string, a app) {
	w.t.Helper()
	if _, err := w.server.Login(w.t, a.user, a.password); err == nil {
		w.t.Errorf("%s: the password opens", when)
	}
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
	mine, theirs := w.bound(w.Provisioned("mine"), "m", ""), w.bound(w.Provisioned("theirs"), "t", "")
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
	mine := w.bound(w.Provisioned("mine"), "m", "")
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
	in := w.Provisioned("i")
	a, b, reader := w.bound(in, "a", ""), w.bound(in, "b", `{"role": "read_write"}`), w.bound(in, "r", `{"role": "read_only"}`)
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
	w.Unbind(a.Binding) // the successor's login goes on
	if must(t, w.login(b), "GET", key) != "2" {
		t.Error("after an unbind, the other binding lacks the data")
	}
	if _, err := w.P.Bind(t.Context(), w.Binding(in, "x", `{"role": "read_only +@all ~*"}`)); err == nil {
		t.Error("a role that does not exist was taken")
	}
}

// An unbind ends every session of its user, whatever that is doing.
func TestAnUnbindEndsSessions(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, b provider.Binding){
		"Unbind":                func(w *world, b provider.Binding) { w.Unbind(b) },
		"Deprovision":           func(w *world, b provider.Binding) { w.Deprovision(b.Instance) },
		"Quarantine":            func(w *world, b provider.Binding) { w.quarantine(provider.BindingTagsOf(b)) },
		"Instance's quarantine": func(w *world, b provider.Binding) { w.quarantine(provider.TagsOf(b.Instance)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, valkeytest.Start(t, "one"))
			a := w.bound(w.Provisioned("i"), "b", "")
			key := a.prefix + "key"
			sessions := map[string]*valkeytest.Session{}
			for _, doing := range []string{"idle", "listens", "waits", "in a transaction"} {
				sessions[doing] = w.login(a)
			}
			must(t, sessions["listens"], "SUBSCRIBE", a.prefix+"c")
			must(t, sessions["in a transaction"], "MULTI")
			must(t, sessions["in a transaction"], "SET", key, "queued")
			expect.OK(t, sessions["waits"].Send("BLPOP", a.prefix+"list", "0"))
			root := w.server.Root(t)
			must(t, root, "ACL", "SETUSER", a.user, "off") // which alone ends no session
			must(t, sessions["idle"], "PING")
			must(t, root, "ACL", "SETUSER", a.user, "on")
			stop := w.knock(a)
			end(w, a.Binding)
			stop()
			_ = sessions["in a transaction"].Send("EXEC")
			_ = sessions["idle"].Send("PING")
			for doing, s := range sessions {
				answer, err := s.Read()
				if _, answered := errors.AsType[valkeytest.Answer](err); err == nil || answered {
					t.Errorf("a session that %s goes on: %v %v", doing, answer, err)
				}
			}
			expect.Never(t, "the server's sessions", must(t, root, "CLIENT", "LIST").(string), "user="+a.user+" ")
			w.shut("in the end", a)
			expect.Same(t, "keys of what was queued", any(int64(0)), must(t, root, "EXISTS", key))
		})
	}
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

func (w *world) quarantine(tags provider.Tags) {
	w.t.Helper()
	expect.OK(w.t, w.P.Quarantine(w.t.Context(), provider.Holding{Tags: tags, Target: w.Target}))
}

// A binding that is in quarantine by itself stays so when its instance is released.
func TestReleasesAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.Start(t, "one"))
	in := w.Provisioned("i")
	a, b := w.bound(in, "a", ""), w.bound(in, "b", "")
	w.quarantine(provider.BindingTagsOf(a.Binding))
	w.quarantine(provider.TagsOf(in))
	if _, err := w.P.Bind(t.Context(), w.Binding(in, "c", "")); err == nil {
		t.Error("an instance in quarantine was bound")
	}
	expect.OK(t, w.P.Release(t.Context(), provider.Holding{Tags: provider.TagsOf(in), Target: w.Target}))
	w.shut("in quarantine by itself, released with its instance", a)
	w.login(b)
}

// A deletion takes an instance's keys, all of them, while an app that was never
// unbound goes on writing, and leaves those of others.
func TestADeletionTakesItsOwnKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	in := w.Provisioned("mine")
	mine, theirs := w.bound(in, "m", ""), w.bound(w.Provisioned("theirs"), "t", "")
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
	w.Deprovision(in)
	<-done
	root := w.server.Root(t)
	if got := must(t, root, "DBSIZE"); got != int64(keys) {
		t.Errorf("%v keys are left, want the %d of the other instance (%d were written late)", got, keys, wrote)
	}
	expect.Same(t, "keys of what was deleted", any([]any{}), must(t, root, "KEYS", mine.prefix+"*"))
}

// A step of a deletion ends in time to remember how far it has come, however slow the server is.
func TestADeletionAtASlowServerGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	root := w.server.Root(t)
	for n := range 100 {
		must(t, root, "SET", fmt.Sprint(n), "x")
	}
	err := valkey.EraseSlowly(t, w.server.Access(), w.Instance("i"), 50*time.Millisecond)
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
	a := w.bound(w.Provisioned("i"), "b", "")
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
		all["MONITOR"] += fmt.Sprintln(expect.Get(monitor.Read())(t))
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
		"Cluster": {func() hosted.Access { return valkeytest.New(t, "cluster-enabled yes").Access() }, "standalone", ""},
		"Replica": {func() hosted.Access { return valkeytest.New(t, "replicaof 127.0.0.1 1").Access() }, "replica",
			target.ReadOnly},
		"Open": {func() hosted.Access {
			s := valkeytest.New(t)
			must(t, s.Root(t), "ACL", "SETUSER", "default", "on", "nopass")
			return s.Access()
		}, "default user", ""},
		"WrongPassword": {func() hosted.Access { a := sound.Access(); a.Password += "x"; return a },
			"refuses the broker's login", target.Login},
		"NoRights": {func() hosted.Access {
			must(t, sound.Root(t), "ACL", "SETUSER", "poor", "on", ">poor", "+ping")
			a := sound.Access()
			a.User, a.Password = "poor", "poor"
			return a
		}, "docs/valkey.md", target.Rights},
		"OursNamedLikeIt": {func() hosted.Access {
			s := valkeytest.New(t)
			a := s.Access()
			must(t, s.Root(t), strings.Fields("ACL SETUSER longshore on >"+a.Password+" "+valkeytest.BrokerRules)...)
			a.User = "longshore"
			return a
		}, "another name", ""},
		"Gone":     {func() hosted.Access { a := sound.Access(); a.Port = 1; return a }, "refused", target.Unreachable},
		"BrokenCA": {func() hosted.Access { a := sound.Access(); a.TLS, a.CA = hosted.TLSVerify, "x"; return a }, "PEM", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := c.server()
			p := provide(t, "broker-"+rand.Text(), providertest.NewClock(start), a, 0)
			in := provider.Instance{Platform: "p", ID: "i", Incarnation: "of i"}
			for range 3 {
				st, err := p.Provision(t.Context(), in)
				if providertest.Keep(&in, st, err); err == nil && st.Target != nil {
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
	in := w.Provisioned("i")
	kept, gone := w.bound(in, "kept", ""), w.bound(in, "gone", "")
	w.Unbind(gone.Binding)
	w.server.Restart(t)
	s := w.login(kept)
	w.shut("after a restart, what was unbound", gone)
	must(t, s, "SET", kept.prefix+"key", "x")
	must(t, w.server.Root(t), "CONFIG", "SET", "maxmemory", "1")
	expect.Same(t, "the server is not full", "OOM", refusedFor(s, "SET", kept.prefix+"other", "x"))
	w.login(w.bound(in, "another", ""))
	w.Unbind(kept.Binding)
	w.Deprovision(in)
	expect.Same(t, "left", nil, w.Held())
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
		w.P = provide(t, w.Broker, w.Clock, a, 0)
		if _, _, err := w.P.List(t.Context(), ""); (err == nil) != c.works {
			t.Errorf("%s: error %v", name, err)
		}
		if !c.works {
			continue
		}
		in := w.Instance("i")
		w.Provision(in)
		g := w.Bind(w.Binding(in, "b", "")).Credentials
		if g["tls"] != true || g["ca"] != c.ca || !strings.HasPrefix(g["uri"].(string), "rediss://") {
			t.Error("an app is not told of TLS")
		}
		want := []string{"ca", "database", "host", "password", "port", "prefix", "tls", "type", "uri", "username"}
		if got := slices.Sorted(maps.Keys(g)); !slices.Equal(got, want) || g["type"] != "redis" || g["database"] != 0 {
			t.Errorf("the credentials have %v, of the type %v, for the database %v", got, g["type"], g["database"])
		}
		w.Deprovision(in)
	}
}
