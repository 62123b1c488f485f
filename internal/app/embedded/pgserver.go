package embedded

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
)

// startPostgres starts the broker's own PostgreSQL, or takes over a server that outlived a killed broker.
func startPostgres(e embedding) (started, error) {
	s, err := pgserver.Open(context.Background(), pgserver.Options{Dir: e.dir, Getenv: e.getenv, Log: e.log})
	if err != nil {
		e.log.Warn("there is no PostgreSQL server: the broker offers everything else", "error", err)
		return started{}, err
	}
	e.log.Info("PostgreSQL runs", "address", s.Access().Address(), "programs", s.Cluster().Bin)
	c := s.Cluster()
	e.serves(backup.Server{Connect: func(ctx context.Context) (*pgx.Conn, error) { return c.Connect(ctx, "") },
		Data: filepath.Join(filepath.Base(e.dir), filepath.Base(c.Data))}, c.Bin)
	return started{access: s.Access(), programs: c.Bin, stop: func() {
		if err := s.Close(); err != nil {
			e.log.Error("the PostgreSQL server cannot be stopped: the next start takes it over", "error", err)
		}
	}}, nil
}

// postgresSettings explains the settings of that server.
const postgresSettings = "\n  " + pgserver.EnvBin + "\n" +
	"      with --postgres embedded, the folder of PostgreSQL's programs; unless it is\n" +
	"      set, PATH, where systems put them, and what `make postgres` installed\n  " +
	pgserver.EnvUser + "\n" +
	"      with --postgres embedded and as root, the user of this system that the\n" +
	"      server runs as; postgres unless set. The data folder records it"

// A Trial is a plan for a new user to try.
type Trial struct {
	ServiceID, PlanID string
	// Psql is the program that connects to the plan's database; empty if the plan makes no database.
	Psql string
}

// Trial returns the first plan of databases that allows asynchronous answers or, if there is
// none, the first such plan of anything.
func (b *Broker) Trial() Trial {
	databases := b.providers[app.ProviderPostgres].Close != nil
	var first Trial // the shipped offerings have such a plan: those of the demo are never left out
	for _, o := range b.offered.Offerings() {
		for _, p := range o.Plans {
			switch {
			case p.Asynchronous != catalog.Allowed:
			case databases && o.Provider == app.ProviderPostgres:
				return Trial{o.ID, p.ID, b.psql()}
			case first.PlanID == "":
				first = Trial{ServiceID: o.ID, PlanID: p.ID}
			}
		}
	}
	return first
}

// psql returns PostgreSQL's own client: the system's or, if there is none, the one beside the broker's own server.
func (b *Broker) psql() string {
	const name = "psql"
	if _, err := exec.LookPath(name); err != nil && b.programs != "" {
		if path, err := exec.LookPath(filepath.Join(b.programs, name)); err == nil {
			return path
		}
	}
	return name
}
