package app

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/provider/valkey"
)

// The providers on shared servers, by their names in offering files.
const (
	ProviderMariaDB  = "mariadb"
	ProviderPostgres = "postgres"
	ProviderValkey   = "valkey"
)

func mariadbRow() hostedRow {
	return hostedRow{
		name: ProviderMariaDB, title: "MariaDB",
		engine: hosted.AddressForm{
			Schemes: map[string]string{"mariadb": "", "mysql": ""}, Example: "mariadb://longshore:PASSWORD@HOST:3306/longshore",
			Port: 3306, UsersDatabase: true, Names: []string{"mariadb"},
		},
		check: mariadb.Check, names: mariadb.Names,
		open: func(o hostedOptions) wired.Provider {
			made := mariadb.New(mariadb.Options{Broker: o.Broker, Accesses: o.Accesses, Now: o.Now, Log: o.Log, Pool: o.Pool})
			return closing(made)
		},
	}
}

func postgresRow() hostedRow {
	return hostedRow{
		name: ProviderPostgres, title: "PostgreSQL",
		engine: hosted.AddressForm{
			Schemes: map[string]string{"postgresql": "", "postgres": ""},
			Example: "postgresql://longshore:PASSWORD@HOST:5432/longshore",
			Port:    5432, UsersDatabase: true, Names: []string{"postgres", "aurora-postgresql"},
		},
		check: postgres.Check, names: postgres.Names,
		open:  openPostgres,
		start: startPostgres, help: postgresSettings,
	}
}

func valkeyRow() hostedRow {
	return hostedRow{
		name: ProviderValkey, title: "Valkey",
		engine: hosted.AddressForm{
			Schemes: map[string]string{
				"redis": hosted.TLSDisable.String(), "valkey": hosted.TLSDisable.String(),
				"rediss": hosted.TLSVerify.String(), "valkeys": hosted.TLSVerify.String(),
			},
			Example: "rediss://lsadmin:PASSWORD@HOST:6379", Port: 6379, NoDatabases: true, Verifies: true,
			Names: []string{"valkey", "redis"},
		},
		check: valkey.Check, names: valkey.Names,
		open: func(o hostedOptions) wired.Provider {
			made := valkey.New(valkey.Options{Broker: o.Broker, Accesses: o.Accesses, Now: o.Now, Log: o.Log, Pool: o.Pool})
			return closing(made)
		},
	}
}

// openPostgres makes the provider. Without programs that copy, it refuses copies and
// says so.
func openPostgres(o hostedOptions) wired.Provider {
	options := postgres.Options{Options: hosted.Options{Broker: o.Broker, Accesses: o.Accesses, Now: o.Now, Log: o.Log, Pool: o.Pool}}
	if o.Copies {
		options.Programs, _ = pgcopy.Find(context.Background(), o.Programs)
	}
	made := postgres.New(options)
	return closing(made)
}

// closing wires a provider that keeps connections.
func closing(made interface {
	provider.Provider
	Close()
}) wired.Provider {
	w := wired.Of(made)
	w.Close = made.Close
	return w
}
