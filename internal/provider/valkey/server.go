package valkey

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A conn is one connection to a server. One command is sent at a time, and none
// is ever repeated by itself.
type conn interface {
	do(ctx context.Context, command ...string) (valkey.ValkeyMessage, error)
	close()
}

// A link is the connection of a step.
type link struct{ client valkey.Client }

func (l link) close() { l.client.Close() }

func (l link) do(ctx context.Context, command ...string) (valkey.ValkeyMessage, error) {
	if err := ctx.Err(); err != nil {
		return valkey.ValkeyMessage{}, err
	}
	m, err := l.client.Do(ctx, l.client.B().Arbitrary(command...).Build()).ToMessage()
	if valkey.IsValkeyNil(err) { // an answer like any other
		err = nil
	}
	return m, err
}

// Sizes of a connection's buffers: a step sends and reads little.
const (
	bufferSize = 16 << 10
	ringScale  = 8
)

// patience is how long a server may leave the client's own question, whether it is
// there, without an answer: a tenant can keep it busy.
const patience = 30 * time.Second

// dial opens a connection. The client's own cache, its retries and its pool are
// for apps, and stay off.
func dial(ctx context.Context, a hosted.Access) (conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	config, err := tlsConfig(a)
	if err != nil {
		return nil, err
	}
	network, address := "tcp", net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	if path.IsAbs(a.Host) {
		network, address = "unix", a.Host
	}
	var begun atomic.Bool
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{address}, Username: a.User, Password: a.Password, ClientName: "longshore",
		ClientSetInfo: valkey.DisableClientSetInfo, ForceSingleClient: true, PipelineMultiplex: -1,
		AlwaysPipelining: true, ConnWriteTimeout: patience, // a step that gives up does not end the connection of others
		DisableCache: true, DisableRetry: true, ReadBufferEachConn: bufferSize, WriteBufferEachConn: bufferSize, RingScaleEachConn: ringScale,
		DialCtxFn: func(now context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if begun.CompareAndSwap(false, true) {
				now = ctx // the client gives none to the first; one that was cut is opened anew by another step
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

// tlsConfig is how a server is spoken to; nil for plain text. There is no way to
// encrypt without verifying by whom it is read.
func tlsConfig(a hosted.Access) (*tls.Config, error) {
	if a.TLS == hosted.TLSRequire {
		return nil, fmt.Errorf("a Valkey server is spoken to by %s or by %s, not by %q: give its URL as redis://, or as rediss://",
			hosted.TLSDisable, hosted.TLSVerify, a.TLS)
	}
	return a.TLSConfig()
}

// A server is one that a step is about.
type server struct {
	conn   conn
	target string
	access hosted.Access
	broker string
	epoch  provider.Epoch // the one that it is at, once that was asked for
}

func (s *server) close() { s.conn.close() }

// open opens a server, and proves that it takes writes.
func (p *Provider) open(ctx context.Context, target string, access hosted.Access) (*server, error) {
	c, err := p.connect(ctx, target, access)
	if err != nil {
		return nil, explain(target, err)
	}
	s := &server{conn: c, target: target, access: access, broker: p.o.Broker}
	hello, err := s.do(ctx, "HELLO")
	if err == nil {
		about, _ := hello.AsMap()
		err = s.writable(text(about["mode"]), text(about["role"]))
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *server) writable(mode, role string) error {
	switch {
	case mode != "standalone":
		return fmt.Errorf("target %q is a server in %q mode, and only one that stands alone is supported: name such a one", s.target, mode)
	case role != "master":
		t := troubles["READONLY"]
		return &provider.Trouble{Kind: t.kind, Target: s.target, Message: t.remedy}
	}
	return nil
}

// text is a member of an answer; empty if there is none.
func text(m valkey.ValkeyMessage) string {
	s, _ := m.ToString()
	return s
}

func (s *server) do(ctx context.Context, command ...string) (valkey.ValkeyMessage, error) {
	m, err := s.conn.do(ctx, command...)
	return m, explain(s.target, err)
}

// troubles are what a person has to end, by the first word of what a server answers.
var troubles = map[string]struct{ kind, remedy string }{
	crowded: {provider.TroubleConnections, "the server takes no more connections: CLIENT LIST, on one that is still open, tells whose " +
		"they are, and CLIENT KILL USER ends them. Where none is open, restart it with a greater maxclients"},
	"NOAUTH":     {provider.TroubleLogin, "the server asks for a login: give the broker's in the settings"},
	"WRONGPASS":  {provider.TroubleLogin, "the server refuses the broker's login: give its password in the settings again"},
	"NOPERM":     {provider.TroubleRights, "the broker's login may not do what it needs: make it as docs/valkey.md says"},
	"LOADING":    {provider.TroubleStarting, "the server is starting, and is asked again"},
	"BUSY":       {provider.TroubleSilent, "the server is busy with a script, and is asked again"},
	"READONLY":   {provider.TroubleReadOnly, "the server is a replica: name the one that takes writes"},
	"MASTERDOWN": {provider.TroubleReadOnly, "the server has lost its primary, and is asked again"},
	"OOM":        {provider.TroubleFull, "the server has no memory left: raise maxmemory, or delete what is not needed"},
	"MISCONF":    {provider.TroubleFull, "the server cannot write its data to disk: look at its log"},
}

// crowded begins what a server at its maxclients answers.
const crowded = "max number of clients"

// explain says whose answer an error is and what to do. A step that meets one is
// made again.
func explain(target string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) { // the broker itself has ended it
		return err
	}
	if answer, ok := valkey.IsValkeyErr(err); ok {
		code, _, _ := strings.Cut(answer.Error(), " ")
		if strings.HasPrefix(answer.Error(), crowded) {
			code = crowded
		}
		if t, known := troubles[code]; known {
			return &provider.Trouble{Kind: t.kind, Target: target, Message: t.remedy, Err: errors.New(code)}
		}
	}
	trouble := &provider.Trouble{Target: target, Err: err}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	network, onTheWay := errors.AsType[net.Error](err)
	switch {
	case untrusted:
		trouble.Kind = provider.TroubleCertificate
		trouble.Message = "its certificate is not to be trusted: give the CA that signed it in the settings"
	case errors.Is(err, context.DeadlineExceeded), onTheWay && network.Timeout():
		trouble.Kind, trouble.Message = provider.TroubleSilent, "it does not answer in time: it hangs, or has more to do than it can"
	case onTheWay, errors.Is(err, io.EOF), errors.Is(err, valkey.ErrClosing):
		trouble.Kind, trouble.Message = provider.TroubleUnreachable, "nobody answers at its address: start it, or mend the way to it"
	default:
		return fmt.Errorf("asking target %q: %w", target, err)
	}
	return trouble
}

// userIdentity is the user who stands for the server itself. It can do nothing.
const userIdentity = "longshore"

// identityMark begins the channel that holds the identity.
const identityMark = "longshore-identity:"

// identity is the server's; empty if it has none yet.
func (s *server) identity(ctx context.Context) (string, error) {
	_, channels, err := s.look(ctx, userIdentity)
	if err != nil {
		return "", err
	}
	for _, c := range channels { // in the order in which they were added
		if id, ok := strings.CutPrefix(c, identityMark); ok {
			return id, nil
		}
	}
	return "", nil
}

// name gives a server an identity. Of two that do so at once, the first is heard. A
// user of that name who may log in is somebody's, perhaps the broker's own login:
// it would be turned off.
func (s *server) name(ctx context.Context, identity string) (string, error) {
	flags, _, err := s.look(ctx, userIdentity)
	if err != nil {
		return "", err
	}
	if slices.Contains(flags, "on") {
		return "", fmt.Errorf("target %q has a user %s who may log in, and that name is for the server's identity: give that user another name, "+
			"as docs/valkey.md says", s.target, userIdentity)
	}
	if err := s.set(ctx, userIdentity, "off", "&"+identityMark+identity); err != nil {
		return "", err
	}
	if err := s.save(ctx); err != nil {
		return "", err
	}
	return s.identity(ctx)
}

// sound proves, before anything is made, that the server keeps its users when it
// restarts, and that nobody gets in without a login.
func (s *server) sound(ctx context.Context) error {
	got, err := s.do(ctx, "CONFIG", "GET", "aclfile")
	if err != nil {
		return err
	}
	settings, err := got.AsStrMap()
	if err == nil && settings["aclfile"] == "" {
		return fmt.Errorf("target %q forgets its users when it restarts: set aclfile in its configuration, as docs/valkey.md says", s.target)
	}
	flags, _, err2 := s.look(ctx, "default")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if slices.Contains(flags, "on") && slices.Contains(flags, "nopass") {
		return fmt.Errorf("target %q lets everybody in without a password: turn its default user off, as docs/valkey.md says", s.target)
	}
	return nil
}

// look reads a user; nil if there is none.
func (s *server) look(ctx context.Context, name string) (flags, channels []string, err error) {
	got, err := s.do(ctx, "ACL", "GETUSER", name)
	if err != nil || got.IsNil() {
		return nil, nil, err
	}
	about, err := got.AsMap()
	if err != nil {
		return nil, nil, fmt.Errorf("reading a user of target %q: %w", s.target, err)
	}
	listed := about["flags"]
	if flags, err = listed.AsStrSlice(); err != nil {
		return nil, nil, fmt.Errorf("reading the flags of a user of target %q: %w", s.target, err)
	}
	for channel := range strings.FieldsSeq(text(about["channels"])) {
		channels = append(channels, strings.TrimPrefix(channel, "&"))
	}
	return flags, channels, nil
}

// set changes a user, or makes it. Each call brings the whole of what says whose
// it is: one that comes late makes nothing that nobody can find.
func (s *server) set(ctx context.Context, name string, rules ...string) error {
	_, err := s.do(ctx, append([]string{"ACL", "SETUSER", name}, rules...)...)
	return err
}

// remove removes users and ends their sessions.
func (s *server) remove(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := s.do(ctx, append([]string{"ACL", "DELUSER"}, names...)...)
	return err
}

// kick ends the sessions of a user.
func (s *server) kick(ctx context.Context, name string) error {
	_, err := s.do(ctx, "CLIENT", "KILL", "USER", name)
	return err
}

// save has the server keep its users as they are.
func (s *server) save(ctx context.Context) error {
	_, err := s.do(ctx, "ACL", "SAVE")
	return err
}

// users are the names that begin so, in order. Hazard: the server names all of its
// users, which is the shorter of the two long answers that an operation needs: it
// also writes all of them down.
func (s *server) users(ctx context.Context, begins string) ([]string, error) {
	got, err := s.do(ctx, "ACL", "USERS")
	if err != nil {
		return nil, err
	}
	names, err := got.AsStrSlice()
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begins) })
	slices.Sort(names)
	return names, err
}

// How much of the keys one step looks at, so that no command holds up others and
// no step lasts.
const (
	scansPerStep = 1000
	scanCount    = 1000
	scanStart    = "0" // also the cursor that follows on the end
)

// run is what the server calls itself until it restarts. A cursor says nothing to
// the next run.
func (s *server) run(ctx context.Context) (string, error) {
	got, err := s.do(ctx, "INFO", "server")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text(got)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id, nil
		}
	}
	return "", fmt.Errorf("target %q does not say which run of the server answers", s.target)
}

// scan reads a part of the keys under an instance's prefix.
func (s *server) scan(ctx context.Context, cursor, pattern string) (keys []string, next string, err error) {
	got, err := s.do(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", strconv.Itoa(scanCount))
	if err != nil {
		return nil, "", err
	}
	parts, err := got.ToArray()
	if err != nil || len(parts) != 2 {
		return nil, "", fmt.Errorf("reading the keys of target %q: an answer of %d parts: %w", s.target, len(parts), err)
	}
	keys, err = parts[1].AsStrSlice()
	return keys, text(parts[0]), err
}

func (s *server) unlink(ctx context.Context, keys []string) error {
	_, err := s.do(ctx, append([]string{"UNLINK"}, keys...)...)
	return err
}

// credentials are what an app is given.
func credentials(a hosted.Access, user, password, prefix string) map[string]any {
	host, port := a.Public()
	uri := "redis"
	if a.TLS == hosted.TLSVerify {
		uri = "rediss"
	}
	all := map[string]any{
		"type": hosted.TypeRedis, "database": 0, // the only one that a user may SELECT
		"uri":  fmt.Sprintf("%s://%s:%s@%s", uri, user, password, net.JoinHostPort(host, strconv.Itoa(port))),
		"host": host, "port": port, "username": user, "password": password, "prefix": prefix, "tls": uri == "rediss",
	}
	if a.CA != "" {
		all["ca"] = a.CA
	}
	return all
}
