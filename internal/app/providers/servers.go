package providers

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/hosted/secrets"
	"github.com/longshore/longshore/internal/provider/remote"
)

// A Server is a provider on shared servers: the differences between such providers, without the code that calls them.
type Server struct {
	Name  string // in offering files, flags, context values and, in capitals, the environment
	Title string // as people write it
	Form  hosted.AddressForm
}

// Servers returns all providers on shared servers, by name.
func Servers() map[string]Server {
	all := map[string]Server{}
	for _, s := range []Server{{
		Name: app.ProviderMariaDB, Title: "MariaDB",
		Form: hosted.AddressForm{
			Schemes: map[string]string{"mariadb": "", "mysql": ""}, Example: "mariadb://longshore:PASSWORD@HOST:3306/longshore",
			Port: 3306, Databases: true, Names: []string{"mariadb"},
		},
	}, {
		Name: app.ProviderPostgres, Title: "PostgreSQL",
		Form: hosted.AddressForm{
			Schemes: map[string]string{"postgresql": "", "postgres": ""},
			Example: "postgresql://longshore:PASSWORD@HOST:5432/longshore",
			Port:    5432, Databases: true, Names: []string{"postgres", "aurora-postgresql"},
		},
	}, {
		Name: app.ProviderValkey, Title: "Valkey",
		Form: hosted.AddressForm{
			Schemes: map[string]string{
				"redis": hosted.TLSDisable.String(), "valkey": hosted.TLSDisable.String(),
				"rediss": hosted.TLSVerify.String(), "valkeys": hosted.TLSVerify.String(),
			},
			Example: "rediss://lsadmin:PASSWORD@HOST:6379", Port: 6379, Verifies: true,
			Names: []string{"valkey", "redis"},
		},
	}} {
		all[s.Name] = s
	}
	return all
}

// EnvSecrets returns the name of the variable that tells the functions where the servers' secrets are.
func (s Server) EnvSecrets() string { return s.Env("SECRETS") }

// Env returns the name of a variable with a setting of the servers.
func (s Server) Env(setting string) string {
	return "LONGSHORE_" + strings.ToUpper(s.Name) + "_" + setting
}

// Secrets returns the secrets that a stack was deployed with; nil for none.
func (s Server) Secrets(getenv func(string) string) (secrets.ARNs, error) {
	text := getenv(s.EnvSecrets())
	if text == "" {
		return nil, nil
	}
	return secrets.Parse(s.EnvSecrets(), text)
}

// Outside is a provider on shared servers as a function outside of their VPC sees it: it has
// all methods of hosted.Provider, but none is ever called.
type Outside struct {
	provider.Provider
	provider.Inventory
	provider.Adopter
	provider.Describer
	wired.Reconciler
}

// deployed returns the provider in a function outside of the VPC, which never calls the provider itself. It looks up,
// in the servers' secrets, how they are reached, and passes that on to the function inside.
func (s Server) deployed(p deployed.Parts) (wired.Provider, error) {
	all, err := s.Secrets(p.Getenv)
	if err != nil {
		return wired.Provider{}, err
	}
	if all == nil || !inside(p, s.Name) {
		return wired.Provider{}, advice.For(s.EnvSecrets(), "is not set, or the provider is called outside of a VPC",
			"deploy the function with its infrastructure, which sets it")
	}
	w := wired.Of(Outside{})
	w.Targets = func(context.Context) ([]string, error) { return all.Names(), nil }
	reader := secrets.NewReader(s.Name, s.Form, all, secretsmanager.NewFromConfig(p.Config), app.Now)
	reach := remote.Reach{LookUp: reader.LookUp, Forget: reader.Forget}
	return called(p, remote.Options{Provider: s.Name, Reach: reach, Outside: w})
}
