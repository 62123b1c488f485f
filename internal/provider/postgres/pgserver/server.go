package pgserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
)

const (
	// startWait is how long a server may take to start. Its recovery after a crash may take longer.
	startWait  = 2 * time.Minute
	startTries = 20
	stopGrace  = 30 * time.Second
	// adoptWait is how long a server that is taken over may take to answer for the first time.
	adoptWait = 20 * time.Second
	hungGrace = 3 * time.Second
	// watchEvery is the pause between two checks of the server while the broker runs.
	watchEvery  = time.Second
	mostBackoff = 64
)

// Options are the arguments of Open.
type Options struct {
	// Dir is the server's folder. Its parent must exist.
	Dir string
	// Getenv reads the settings EnvBin and EnvUser.
	Getenv func(string) string
	Log    *slog.Logger
}

// A Server runs a folder's PostgreSQL server, and starts it again as soon as possible if it ends.
type Server struct {
	cluster Cluster
	record  record
	log     *slog.Logger
	stop    context.CancelFunc
	watched chan struct{}

	pid        atomic.Int64
	recovering bool // when the start ended
	ready      bool // it has the broker's login, and its files of today
}

// Open starts the server of a folder, or takes over a server that still runs there because its broker was
// killed. It first sets up an empty folder. It does not wait for a long recovery: until that ends, the server
// says that it starts.
func Open(ctx context.Context, o Options) (*Server, error) { return open(ctx, o, startWait) }

func open(ctx context.Context, o Options, wait time.Duration) (*Server, error) {
	s := &Server{log: o.Log, watched: make(chan struct{})}
	if err := s.prepare(ctx, o); err != nil {
		return nil, err
	}
	if err := s.start(ctx, wait); err != nil {
		return nil, err
	}
	err := error(nil)
	if !s.recovering { // the watch admits the broker once it has recovered
		err = s.admit(ctx)
	}
	switch {
	case s.recovering, recovers(err):
		s.log.Warn("the PostgreSQL server has much to recover since it was killed: what needs it waits until that is done")
	case err != nil:
		return nil, errors.Join(fmt.Errorf("preparing the PostgreSQL server: %w", err), s.end(ctx))
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go s.watch(watch)
	return s, nil
}

// prepare finds everything that a start needs, and sets up what is missing.
func (s *Server) prepare(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if s.record, err = readRecord(dir); err != nil {
		return err
	}
	account, err := s.record.account(o.Getenv(EnvUser))
	if err != nil {
		return err
	}
	data := filepath.Join(dir, dirData)
	major, err := majorOf(data)
	if err != nil {
		return err
	}
	programs, err := Find(ctx, major, o.Getenv(EnvBin), account)
	if err != nil {
		return err
	}
	if err := makeFolders(dir, account); err != nil {
		return err
	}
	if s.record.Port == 0 {
		if s.record, err = newRecord(dir, account); err != nil {
			return err
		}
	}
	sockets, err := s.record.socketFolder(dir, account)
	if err != nil {
		return err
	}
	s.cluster = Cluster{
		Bin: programs.Dir, Data: data, Sockets: sockets, Port: s.record.Port, Account: account,
		Settings: ownSettings(filepath.Join(dir, dirLog)),
	}
	if err := s.record.write(dir); err != nil {
		return err
	}
	if major == 0 {
		o.Log.Info("setting up PostgreSQL", "version", programs.Major, "programs", programs.Dir, "folder", dir)
		return s.cluster.initWhole(ctx, programs.Major)
	}
	return s.cluster.checkOwner()
}

// account returns the account that the server runs as. Once chosen for a folder, it never changes.
func (r record) account(wanted string) (Account, error) {
	if r.Port == 0 {
		return FindAccount(wanted)
	}
	if os.Geteuid() != 0 {
		if r.Account.IsOther() && int(r.Account.UID) != os.Geteuid() {
			return Account{}, advice.For("the PostgreSQL server", fmt.Sprintf("of this folder runs as %q", r.Account.Name),
				"start the broker as that user, or as root")
		}
		return FindAccount(wanted)
	}
	if !r.Account.IsOther() {
		return r.Account, advice.For("the PostgreSQL server", "of this folder was made by a user other than root",
			"start the broker as that user")
	}
	if wanted != "" && wanted != r.Account.Name {
		return Account{}, advice.For(EnvUser, fmt.Sprintf("is %q, but the server's files belong to %q", wanted, r.Account.Name),
			"leave it out")
	}
	return r.Account, nil
}

// majorOf returns the major version that wrote a data folder; 0 if there is no folder.
func majorOf(data string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(data, fileVersion))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err == nil && pgconfig.Major(string(raw)) == 0 {
		err = errors.New("it is not whole")
	}
	if err != nil {
		return 0, &advice.Error{Name: fmt.Sprintf("data of PostgreSQL in %q", data), What: "cannot be read: " + fileVersion,
			Remedy: "allow them to be read, or restore them from a backup", Cause: err}
	}
	return pgconfig.Major(string(raw)), nil
}

// start takes over a server that runs already, or launches one.
func (s *Server) start(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := s.cluster.WriteAccess(); err != nil {
		return err
	}
	running, err := s.adopt(ctx)
	if running || err != nil {
		return err
	}
	// If the server's first process was killed, its other processes may hold its memory for a moment.
	for n := range startTries {
		if err = waiting.For(ctx, time.Duration(n)*100*time.Millisecond); err != nil {
			return err
		}
		if isFree(s.cluster.Port) != nil {
			return advice.For("PostgreSQL", fmt.Sprintf("cannot listen on port %d, which its credentials name: %s has it",
				s.cluster.Port, holderOf(s.cluster.Port)), "end that one, and start the broker again")
		}
		if err = s.launch(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// adopt takes over the server that runs in this folder already, and reports whether there was one.
func (s *Server) adopt(ctx context.Context) (bool, error) {
	c := s.cluster
	pid := c.PID()
	switch {
	case pid == 0:
		return false, nil
	case !alive(pid), !serves(ctx, pid, c.Data):
		// PostgreSQL would mistake a zombie with that id for the server, or a process that has got the id
		// since the machine went down.
		s.log.Info("the PostgreSQL server was killed, or the machine went down: it recovers now", "pid", pid)
		return false, os.Remove(filepath.Join(c.Data, filePID))
	}
	answer, cancel := context.WithTimeout(ctx, adoptWait)
	defer cancel()
	err := c.Ready(answer, pid)
	s.recovering = recovers(err)
	switch {
	case err == nil:
		if err := c.reload(ctx); err != nil {
			return false, err
		}
	case !s.recovering:
		s.log.Warn("a PostgreSQL server runs in this folder, and does not answer: it is started again", "pid", pid, "error", err)
		return false, Stop(context.WithoutCancel(ctx), pid, hungGrace)
	}
	s.pid.Store(int64(pid))
	s.log.Info("the PostgreSQL server of this folder was still running, and the broker takes it over", "pid", pid, "port", c.Port)
	return true, nil
}

// admit makes the broker's login, once the server answers. It does nothing if that was done.
func (s *Server) admit(ctx context.Context) error {
	if s.ready {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	err := error(nil)
	if s.recovering { // one that was taken over has not read its files of today yet
		err = s.cluster.reload(ctx)
	}
	if err == nil {
		err = s.cluster.Grant(ctx, s.Access())
	}
	s.ready = err == nil
	return err
}

// reload proves that the server is this folder's, and makes it reread who may connect.
func (c Cluster) reload(ctx context.Context) error {
	conn, err := c.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var data string
	if err := conn.QueryRow(ctx, "SELECT current_setting('data_directory')").Scan(&data); err != nil {
		return err
	}
	same, err := sameFolder(data, c.Data)
	if err == nil && !same {
		err = fmt.Errorf("the server at the socket in %s serves the data in %s", c.Sockets, data)
	}
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_reload_conf()")
	return err
}

func sameFolder(a, b string) (bool, error) {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	if err := errors.Join(errOne, errOther); err != nil {
		return false, err
	}
	return os.SameFile(one, other), nil
}

// launch starts the server and waits until it answers, or recovers when the context ends.
func (s *Server) launch(ctx context.Context) error {
	path := s.cluster.beside(fileStart)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := s.cluster.Serve()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting PostgreSQL: %w", err)
	}
	s.pid.Store(int64(cmd.Process.Pid))
	go func() { _ = cmd.Wait() }() // its log says how it ended
	err = s.cluster.Ready(ctx, cmd.Process.Pid)
	s.recovering = recovers(err)
	if err != nil && !s.recovering {
		said, _ := os.ReadFile(path)
		err = &advice.Error{Name: "PostgreSQL", What: "does not start", Cause: fmt.Errorf("%w: %s", err, end(said)),
			Remedy: "see what it says in " + path + " and in " + s.cluster.beside(dirLog)}
		return errors.Join(err, s.end(ctx))
	}
	return nil
}

// Close stops the server, and waits until it is gone. No data are lost.
func (s *Server) Close() error {
	s.stop()
	<-s.watched
	return s.end(context.Background())
}

func (s *Server) end(ctx context.Context) error {
	return Stop(context.WithoutCancel(ctx), int(s.pid.Load()), stopGrace)
}

// Access returns how the broker's login and users reach the server.
func (s *Server) Access() hosted.Access {
	return hosted.Access{
		Host: Loopback, Port: s.record.Port, User: s.record.User, Password: s.record.Password, Database: s.record.Database,
		TLS: hosted.TLSDisable,
	}
}

// Cluster returns the server as its superuser sees it, for backups.
func (s *Server) Cluster() Cluster { return s.cluster }
