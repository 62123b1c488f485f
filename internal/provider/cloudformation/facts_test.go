package cloudformation

import (
	"context"
	"net/url"
	"testing"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
)

// Facts are those outputs of a stack that say where it is, and no others: an output may be a secret.
func TestFactsOfAStack(t *testing.T) {
	h := factory("", false)(t)
	in := provider.Instance{
		Broker: h.Broker, Platform: "p", ID: "i", Incarnation: "first", PlanID: h.PlanID, Settings: h.Settings,
		Operation: provider.Operation{ID: "first", Kind: operation.Provision, Started: h.Clock.Now()},
		Target:    provider.Target{Name: plan.DefaultTarget},
	}
	providertest.Must(t, h.Clock, func(ctx context.Context) (provider.Status, error) {
		st, err := h.Provider.Provision(ctx, in)
		providertest.Keep(&in, st, err)
		return st, err
	})
	p := h.Provider.(planned)
	s, _, err := p.begin(t.Context(), withPlan(in))
	expect.OK(t, err)
	made := s.cloud.(fakeClient).fake.account(here).stacks[0]
	console := "https://eu-central-1.console.aws.amazon.com/cloudformation/home?region=eu-central-1#/stacks/stackinfo?stackId=" +
		url.QueryEscape(made.id)
	for name, tc := range map[string]struct {
		outputs map[string]string
		address string
	}{
		"None":     {map[string]string{"MasterPassword": "secret", "Port": "5432"}, ""},
		"Endpoint": {map[string]string{"Endpoint": "https://s3.example"}, "https://s3.example"},
		"HostPort": {map[string]string{"Host": "db.example", "Port": "5432", "Password": "secret"}, "db.example:5432"},
	} {
		t.Run(name, func(t *testing.T) {
			made.outputs = tc.outputs
			want := provider.Facts{Region: "eu-central-1", Address: tc.address, Console: console}
			expect.Same(t, "facts", want, expect.Get(p.Describe(t.Context(), in))(t))
		})
	}
}
