package providers

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// All that is wrong is refused at once, each with its setting.
func TestWrongSettingsOfAWSAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set  map[string]string
		want []string
	}{
		"Flag":     {map[string]string{app.EnvAWS: "yes please"}, []string{app.EnvAWS, "neither true nor false"}},
		"Emulated": {map[string]string{app.EnvAWSEmulated: "localstack"}, []string{app.EnvAWSEmulated, "neither true nor false"}},
		"Targets":  {map[string]string{app.EnvAWSTargets: "{"}, []string{app.EnvAWSTargets, "JSON of the expected form"}},
		"All": {map[string]string{app.EnvAWS: "2", app.EnvAWSTargets: `{"targets": {"a": {"vpc": "x"}, "b": {"region": "y"}}}`},
			[]string{app.EnvAWS, `target "a"`, `target "b"`}},
	} {
		err := expect.Err(ReadServices(func(name string) string { return c.set[name] }))
		expect.Says(t, name, fmt.Sprint(err), c.want...)
	}
}

// Rules name plans as people do; the provider knows them by their ids. Without a catalog there are no rules.
func TestRulesOfTargetsNamePlans(t *testing.T) {
	targets := plan.Targets{Targets: map[string]plan.Target{"default": {}, "other": {Region: "eu-west-1"}},
		Rules: []plan.TargetRule{
			{Plan: "queues/small", Target: "other"}, {Plan: "queues/gone", Target: "other"}, {Platform: "p-1", Target: "default"},
		}}
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	got := TargetsOf(targets, catalogtest.AWS(t, map[string]string{"queues": "sqs:CreateQueue"}), log)
	want := []plan.TargetRule{{Plan: "plan-of-queues", Target: "other"}, {Platform: "p-1", Target: "default"}}
	expect.Same(t, "rules", want, got.Rules)
	if !strings.Contains(said.String(), "queues/gone") || got.Targets["other"].Region != "eu-west-1" {
		t.Errorf("%+v; the log says %s", got, said.String())
	}
	if got := TargetsOf(targets, nil, log); got.Rules != nil || len(got.Targets) != 2 {
		t.Errorf("without what is offered: %+v", got)
	}
}

// From outside, a stack has the provider where its outputs say so.
func TestAStackSaysWhetherItHasAWSServices(t *testing.T) {
	for targets, has := range map[string]bool{"": false, "{}": true} {
		set := FromOutputs("Longshore", map[string]string{outputs.AWSTargets: targets, outputs.Broker: "b"})
		expect.Same(t, fmt.Sprintf("with %q it has them: %v", targets, set), has,
			strings.Contains(set[app.EnvProviders], app.ProviderCloudFormation))
	}
}

// In a function, the provider needs to know whose it is, and takes its targets from
// its settings; one that looks no plan up has it without a catalog.
func TestAFunctionHasTheProvider(t *testing.T) {
	set := map[string]string{app.EnvProviders: app.ProviderCloudFormation, app.EnvStack: "Longshore"}
	p := deployed.Parts{Getenv: func(name string) string { return set[name] }, Log: slog.New(slog.DiscardHandler)}
	expect.Says(t, "without an identity", fmt.Sprint(expect.Err(Wired(p))), app.EnvBroker)
	set[app.EnvBroker], set[app.EnvAWSTargets] = "b", `{"targets": {"other": {"region": "eu-west-1"}}}`
	targets := expect.Get(Wired(p))(t)[app.ProviderCloudFormation].Targets
	expect.Same(t, "targets", []string{"default", "other"}, expect.Get(targets(t.Context()))(t))
}

// A heard is a way to AWS that ends here: it keeps the requests, and nothing answers.
type heard struct{ bodies []string }

func (h *heard) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	h.bodies = append(h.bodies, string(body))
	return nil, errors.Join(errors.New("nothing answers"), err)
}

// The function that lists what exists takes another account's role for listing alone.
func TestListingTakesARoleForListing(t *testing.T) {
	set := map[string]string{app.EnvProviders: app.ProviderCloudFormation, app.EnvStack: "Longshore", app.EnvBroker: "b",
		app.EnvAWSTargets: `{"targets":
		{"another": {"role": "arn:aws:iam::222233334444:role/x", "external_id": "ours", "account": "222233334444"}}}`}
	for _, lists := range []bool{true, false} {
		h := &heard{}
		p := deployed.Parts{Getenv: func(name string) string { return set[name] }, Log: slog.New(slog.DiscardHandler),
			Lists: lists, Config: aws.Config{Region: "eu-central-1", HTTPClient: h, RetryMaxAttempts: 1,
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}}
		wired := expect.Get(Wired(p))(t)
		if _, _, err := wired[app.ProviderCloudFormation].Inventory.List(t.Context(), `{"target":"another"}`); err == nil {
			t.Error("nobody was asked, and something was listed")
		}
		asked := strings.Join(h.bodies, " ")
		if !strings.Contains(asked, "Action=AssumeRole&") || strings.Contains(asked, "&Policy=") != lists ||
			strings.Contains(asked, "CreateStack") {
			t.Errorf("lists %v: it asked %q", lists, asked)
		}
	}
}
