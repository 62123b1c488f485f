package app

import (
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
)

// The providers on shared servers, by their names in offering files.
const ProviderPostgres = "postgres"

var postgresRow = hostedRow{
	name: ProviderPostgres, title: "PostgreSQL",
	engine: hosted.Engine{
		Schemes: map[string]string{"postgresql": "", "postgres": ""}, Example: "postgresql://longshore:PASSWORD@HOST:5432/longshore",
		Port: 5432, UsersDatabase: true, Names: []string{"postgres", "aurora-postgresql"},
	},
	check: postgres.Check,
	open:  func(o hostedOptions) hostedProvider { return postgres.New(postgres.Options(o)) },
	start: startPostgres, help: postgresSettings,
}
