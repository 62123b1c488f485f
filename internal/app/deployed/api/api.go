// Package api wires the function of the broker's HTTP API. It links no provider, since each
// cold start would have to load it: plans were checked when the catalog was compiled, and the
// provisioner calls the providers.
package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/web"
	"github.com/longshore/longshore/internal/front/gateway"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/records/vault/kms"
)

// New returns the handler of functions/api. It has no rights to the providers' things, nor to IAM.
func New(ctx context.Context, p deployed.Parts) (gateway.Handler, error) {
	err := p.Required(app.EnvTable, app.EnvKey, app.EnvSecret, app.EnvStateMachine, app.EnvProvisioner, app.EnvBroker)
	if err != nil {
		return nil, err
	}
	offered, err := p.Offered()
	if err != nil {
		return nil, err
	}
	bounds, err := app.ReadRetryAfter(p.Getenv)
	if err != nil {
		return nil, err
	}
	perSecond, err := app.PlatformRate(p.Getenv)
	if err != nil {
		return nil, err
	}
	secret := deployed.NewSecret(p.Config, p.Getenv(app.EnvSecret))
	known, err := platforms.NewKept(ctx, secret.Registry, app.Now, p.Log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", app.EnvSecret, err)
	}
	server := web.New(web.Options{
		Identity: p.Getenv(app.EnvBroker), Records: p.Records(), Catalog: offered, Vault: p.Vault(),
		Engine: p.Engine(), Platforms: known, Registry: secret.Registry, RetryAfter: bounds, PlatformRate: perSecond,
		Now: app.Now, Log: p.Log, Metrics: p.Metrics,
	})
	return gateway.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r.WithContext(kms.Together(r.Context())))
	}), p.Log), nil
}
