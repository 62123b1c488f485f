package valkey

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A conn is a connection to a server. Its do sends one command, and never retries it.
type conn interface {
	do(ctx context.Context, command ...string) (valkey.ValkeyMessage, error)
	close()
}

// A link is a conn to a real server.
type link struct{ client valkey.Client }

func (l link) close() { l.client.Close() }

func (l link) do(ctx context.Context, command ...string) (valkey.ValkeyMessage, error) {
	if err := ctx.Err(); err != nil {
		return valkey.ValkeyMessage{}, err
	}
	m, err := l.client.Do(ctx, l.client.B().Arbitrary(command...).Build()).ToMessage()
	if valkey.IsValkeyNil(err) { // nil is an answer like any other
		err = nil
	}
	return m, err
}

// The buffers of a connection are small, because a step sends and reads little.
const (
	bufferSize = 16 << 10
	ringScale  = 8
)

// patience is how long the client waits for the answer to its ping before it closes the connection. A tenant
// can keep the server busy for that long.
const patience = 30 * time.Second

// dial opens a connection. It turns off the client's cache, retries and pool, which are meant for apps.
func dial(ctx context.Context, a hosted.Access) (conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	config, err := a.TLSConfig()
	if err != nil {
		return nil, err
	}
	network, address := a.Network(), a.Address()
	var begun atomic.Bool
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{address}, Username: a.User, Password: a.Password, ClientName: "longshore",
		ClientSetInfo: valkey.DisableClientSetInfo, ForceSingleClient: true, PipelineMultiplex: -1,
		AlwaysPipelining: true, ConnWriteTimeout: patience, // a step that gives up does not close the others' connection
		DisableCache: true, DisableRetry: true, ReadBufferEachConn: bufferSize, WriteBufferEachConn: bufferSize,
		RingScaleEachConn: ringScale,
		DialCtxFn: func(now context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if begun.CompareAndSwap(false, true) {
				now = ctx // the client passes no context to its first dial; a later step may dial again
			}
			if config == nil {
				return d.DialContext(now, network, address)
			}
			return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(now, network, address)
		},
	})
	if err != nil {
		return nil, err
	}
	return link{client}, nil
}

// A server is a Valkey server with one connection to it. Hazard: tenants can take all connections of a server
// (maxclients); the broker can then open none, not even to shut a tenant out. A program that outlives its
// steps therefore keeps the connection. The first command opens it, and the client reopens it after a cut.
type server struct {
	access hosted.Access
	dial   func(ctx context.Context, a hosted.Access) (conn, error)

	mu   sync.Mutex
	conn conn
}

// Close closes the connection.
func (s *server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.close()
	}
	s.conn = nil
}

func (s *server) do(ctx context.Context, command ...string) (m valkey.ValkeyMessage, err error) {
	s.mu.Lock()
	if s.conn == nil {
		s.conn, err = s.dial(ctx, s.access)
	}
	c := s.conn
	s.mu.Unlock()
	if err != nil {
		return m, err
	}
	return c.do(ctx, command...)
}

// text returns the text of an answer, or "" if the answer is not a text.
func text(m valkey.ValkeyMessage) string {
	s, _ := m.ToString()
	return s
}

// crowded is the beginning of the error that a server returns when it has reached its maxclients.
const crowded = "max number of clients"

// classes maps the first word of a server's error to the class of the error.
var classes = map[string]hosted.Class{
	crowded: {Kind: target.Connections, Remedy: "the server takes no more connections: CLIENT LIST, on one that is still open, " +
		"tells whose they are, and CLIENT KILL USER ends them. Where none is open, restart it with a greater maxclients"},
	"NOAUTH":     hosted.Login,
	"WRONGPASS":  hosted.Login,
	"NOPERM":     {Kind: target.Rights, Remedy: "the broker's login may not do what it needs: make it as docs/valkey.md says"},
	"LOADING":    hosted.Starting,
	"BUSY":       {Kind: target.Silent, Remedy: "the server is busy with a script, and is asked again"},
	"READONLY":   hosted.ReadOnly,
	"MASTERDOWN": hosted.ReadOnly,
	"OOM":        {Kind: target.Full, Remedy: "the server has no memory left: raise maxmemory, or delete what is not needed"},
	"MISCONF":    {Kind: target.Full, Remedy: "the server cannot write its data to disk: look at its log"},
}

// word returns the first word of a server's error, crowded for a full server, and "" for any other error.
func word(err error) string {
	answer, ok := valkey.IsValkeyErr(err)
	if !ok {
		return ""
	}
	if strings.HasPrefix(answer.Error(), crowded) {
		return crowded
	}
	first, _, _ := strings.Cut(answer.Error(), " ")
	return first
}

// errReplica is the error for a server that replicates another one.
var errReplica = errors.New("it is a replica")

func classOf(err error) hosted.Class {
	switch {
	case errors.Is(err, errReplica):
		return hosted.ReadOnly
	case errors.Is(err, valkey.ErrClosing):
		return hosted.Away
	}
	return classes[word(err)]
}

// told removes the command from an error: it keeps only the first word of an error that has a class.
func told(err error) error {
	if first := word(err); first != "" && classes[first] != hosted.Other {
		return errors.New(first)
	}
	return err
}

// userIdentity is the name of the user that holds the server's identity. This user has no rights.
const userIdentity = "longshore"

// identityMark is the prefix of the channel that contains the identity.
const identityMark = "longshore-identity:"

// Identify implements hosted.Server. It refuses clusters and replicas. All brokers see the same identity: if
// two of them write one at the same time, the first one counts.
func (s *server) Identify(ctx context.Context, broker string, write bool) (said hosted.Said, err error) {
	hello, err := s.do(ctx, "HELLO")
	if err != nil {
		return said, err
	}
	about, _ := hello.AsMap()
	switch mode := text(about["mode"]); {
	case mode != "standalone":
		return said, fmt.Errorf("it is a server in %q mode, and only a standalone server is supported: name one", mode)
	case text(about["role"]) != "master":
		return said, errReplica
	}
	holder, flags, err := s.user(ctx, userIdentity)
	if err == nil && holder.identity == "" && write {
		holder, err = s.name(ctx, flags)
	}
	if err != nil || holder.identity == "" { // a server without an identity holds nothing of ours
		return said, err
	}
	said.Identity = holder.identity
	said.Epoch, _, err = s.epoch(ctx, broker)
	return said, err
}

// name writes an identity to the server, and returns the user that holds it. Hazard: the command turns off
// the user that it names. If a user of that name can log in, name refuses: it belongs to somebody, and may be
// the broker's own login.
func (s *server) name(ctx context.Context, flags []string) (holder user, err error) {
	if err := s.sound(ctx); err != nil {
		return holder, err
	}
	if slices.Contains(flags, "on") {
		return holder, fmt.Errorf("it has a user %s who may log in, and that name is for the server's identity: give that user "+
			"another name, as docs/valkey.md says", userIdentity)
	}
	if _, err = s.do(ctx, "ACL", "SETUSER", userIdentity, "off", "&"+identityMark+rand.Text()); err == nil {
		err = s.save(ctx)
	}
	if err == nil {
		holder, _, err = s.user(ctx, userIdentity)
	}
	return holder, err
}

// sound returns an error if the server loses its users when it restarts, or lets clients in without a login.
// Steps call it before they make anything.
func (s *server) sound(ctx context.Context) error {
	got, err := s.do(ctx, "CONFIG", "GET", "aclfile")
	if err != nil {
		return err
	}
	settings, err := got.AsStrMap()
	if err == nil && settings["aclfile"] == "" {
		return errors.New("it forgets its users when it restarts: set aclfile in its configuration, as docs/valkey.md says")
	}
	_, flags, err2 := s.user(ctx, "default")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if slices.Contains(flags, "on") && slices.Contains(flags, "nopass") {
		return errors.New("it lets everybody in without a password: turn off its default user, as docs/valkey.md says")
	}
	return nil
}

// epochPrefix returns the prefix of the users whose names record the epoch of a broker. These users have no
// rights. The greatest count in their names is the epoch; an older file of users, restored, has a smaller
// one. A name never changes its meaning, so a late command cannot lower the epoch. Each broker has its own
// epoch, so that changes by other brokers after a restore do not hide what this broker has lost.
func epochPrefix(broker string) string {
	return userIdentity + "." + hosted.Name("", provider.Tags{Broker: broker}) + "."
}

// epoch returns the epoch of a broker, or zero if there is none yet, and the counts by the users that record
// them. If two processes raise the epoch at the same time, they leave two marks of one count; epoch joins
// the marks, so that its result equals neither.
func (s *server) epoch(ctx context.Context, broker string) (at target.Epoch, marks map[string]int64, err error) {
	names, err := s.users(ctx, epochPrefix(broker))
	marks = map[string]int64{}
	for _, name := range names {
		first, mark, _ := strings.Cut(strings.TrimPrefix(name, epochPrefix(broker)), ".")
		count, err := strconv.ParseInt(first, 10, 64)
		if err != nil || count <= 0 {
			continue
		}
		marks[name] = count
		switch {
		case count > at.Count:
			at = target.Epoch{Count: count, Mark: mark}
		case count == at.Count:
			at.Mark += "+" + mark
		}
	}
	return at, marks, err
}

// Advance implements hosted.Server. Hazard: the server has no command that makes a user only if another one
// exists, so two processes can raise the epoch at the same time. Each that finds both users removes its own.
func (s *server) Advance(ctx context.Context, broker string, _, to target.Epoch) (bool, error) {
	name := fmt.Sprintf("%s%d.%s", epochPrefix(broker), to.Count, to.Mark)
	if _, err := s.do(ctx, "ACL", "SETUSER", name, "reset", "off"); err != nil {
		return false, err
	}
	at, marks, err := s.epoch(ctx, broker)
	if err != nil {
		return false, err
	}
	command := []string{"ACL", "DELUSER"}
	for mark, count := range marks {
		if at == to && count < to.Count || at != to && mark == name {
			command = append(command, mark)
		}
	}
	if len(command) > 2 {
		if _, err := s.do(ctx, command...); err != nil {
			return false, err
		}
	}
	return at == to, s.save(ctx)
}

// credentials returns the credentials of a binding.
func credentials(a hosted.Access, user, password, prefix string) map[string]any {
	all, address := a.Credentials(hosted.TypeRedis, user, password)
	scheme := "redis"
	if a.TLS == hosted.TLSVerify {
		scheme = "rediss"
	}
	all["database"] = 0 // the only one that a user may SELECT
	all["uri"] = fmt.Sprintf("%s://%s:%s@%s", scheme, user, password, address)
	all["prefix"], all["tls"] = prefix, scheme == "rediss"
	return all
}
