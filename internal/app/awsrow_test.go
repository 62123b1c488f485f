package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/emulator"
)

func preparing(t *testing.T, scope plan.Scope, offered *catalog.Catalog) bootstrap.Options {
	return bootstrap.Options{Scope: scope, Offered: offered, Every: time.Millisecond, Say: t.Logf}
}

// Rules name plans as people do; the provider knows them by their ids. Whoever only
// lists has none.
func TestRulesOfTargetsNamePlans(t *testing.T) {
	targets := bootstrap.Targets{Targets: map[string]plan.Target{"default": {}, "other": {Region: "eu-west-1"}},
		Rules: []plan.TargetRule{
			{Plan: "queues/small", Target: "other"}, {Plan: "queues/gone", Target: "other"}, {Platform: "p-1", Target: "default"},
		}}
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	got := targetsOf(targets, catalogtest.AWS(t, map[string]string{"queues": "sqs:CreateQueue"}), log)
	want := []plan.TargetRule{{Plan: "plan-of-queues", Target: "other"}, {Platform: "p-1", Target: "default"}}
	if diff := cmp.Diff(want, got.Rules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(said.String(), "queues/gone") || got.Named["other"].Region != "eu-west-1" {
		t.Errorf("%+v; the log says %s", got, said.String())
	}
	if got := targetsOf(targets, nil, log); got.Rules != nil || len(got.Named) != 2 {
		t.Errorf("without what is offered: %+v", got)
	}
}

// The embedded broker goes on without AWS services until they are asked for and their
// account is prepared, and says the command. Where they were used before, it waits for
// an AWS that does not answer.
func TestAWSIsLeftOutUntilItIsPrepared(t *testing.T) {
	cfg := emulator.Config(t)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": *cfg.BaseEndpoint, "AWS_REGION": cfg.Region, "AWS_ACCESS_KEY_ID": "test",
		"AWS_SECRET_ACCESS_KEY": "test",
		"AWS_CONFIG_FILE":       "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_PROFILE": "",
		"AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	set := map[string]string{}
	offered := catalogtest.AWS(t, map[string]string{"queues": "sqs:CreateQueue"})
	e := embedding{
		folder: "here", broker: emulator.Name("broker"), offered: offered, log: slog.New(slog.DiscardHandler), now: now,
		getenv: func(name string) string { return set[name] }, wait: waiting.For,
	}
	left := func(want string) {
		t.Helper()
		_, err := cloudformationEmbedded(e)
		if why := (unavailable{}); !errors.As(err, &why) || !strings.Contains(why.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
	left("--aws is not given")
	set[EnvAWS] = "true"
	left("longshore aws bootstrap --data here")
	_, err := bootstrap.Run(t.Context(), preparing(t, plan.ScopeOf(e.broker), offered))
	for tries := 1; err != nil && tries < 3; tries++ { // the emulator may cut off an answer, and the SDK may ask once only
		t.Log(err)
		_, err = bootstrap.Run(t.Context(), preparing(t, plan.ScopeOf(e.broker), offered))
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := cloudformationEmbedded(e)
	if err != nil || w.Provider == nil || w.Inventory == nil || w.Targets == nil || w.Wait != waits[ProviderCloudFormation] {
		t.Errorf("prepared: %+v, %v", w, err)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	left("it runs where AWS_ENDPOINT_URL says")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	left("set AWS_PROFILE")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	e.used = true
	if _, err := cloudformationEmbedded(e); err != nil {
		t.Errorf("used before, and AWS does not answer: %v", err)
	}
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	left("AWS_REGION is not set")
}

// A refused call at the start is made again, and costs nobody the offerings: who has used
// them before keeps them however long it is refused, and who has not is told in the log.
func TestARefusedStartIsTriedAgain(t *testing.T) {
	cfg := emulator.Config(t)
	to, err := url.Parse(*cfg.BaseEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	var refuses atomic.Int32 // so many calls
	onward := httputil.NewSingleHostReverseProxy(to)
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Add(-1) >= 0 {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w,
				`<ErrorResponse><Error><Code>InvalidClientTokenId</Code><Message>new</Message></Error></ErrorResponse>`)
			return
		}
		onward.ServeHTTP(w, r)
	}))
	t.Cleanup(at.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": at.URL, "AWS_REGION": cfg.Region, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_PROFILE": "", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	offered := catalogtest.AWS(t, map[string]string{"queues": "sqs:CreateQueue"})
	broker := emulator.Name("broker")
	if _, err := bootstrap.Run(t.Context(), preparing(t, plan.ScopeOf(broker), offered)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason       string
		refused      int32
		used         bool
		waits        int
		wired, warns bool
	}{
		"Once":         {"the next call is taken", 1, false, 1, true, false},
		"ForLong":      {"the offerings of the broker that never had any are left out", 100, false, 5, false, true},
		"ForLongInUse": {"whoever has instances sees their offerings", 100, true, 5, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			waited := 0
			e := embedding{
				folder: "here", broker: broker, offered: offered, now: now, used: tc.used,
				log:    slog.New(slog.NewTextHandler(&said, nil)),
				getenv: func(name string) string { return map[string]string{EnvAWS: "true"}[name] },
				wait: func(context.Context, time.Duration) error {
					if waited++; waited == 5 {
						return context.DeadlineExceeded
					}
					return nil
				},
			}
			refuses.Store(tc.refused)
			w, err := cloudformationEmbedded(e)
			refuses.Store(0)
			_, left := errors.AsType[unavailable](err)
			if (w.Provider != nil) != tc.wired || left == tc.wired || waited != tc.waits {
				t.Errorf("%s: wired %v, error %v, after %d waits", tc.reason, w.Provider, err, waited)
			}
			if strings.Contains(said.String(), "level=WARN") != tc.warns {
				t.Errorf("%s: the log says %s", tc.reason, said.String())
			}
		})
	}
}

// From outside, a stack has the provider where its outputs say so.
func TestAStackSaysWhetherItHasAWSServices(t *testing.T) {
	for targets, has := range map[string]bool{"": false, "{}": true} {
		set := fromOutside("Longshore", map[string]string{outputs.AWSTargets: targets, outputs.Broker: "b"})
		if got := strings.Contains(set[EnvProviders], ProviderCloudFormation); got != has {
			t.Errorf("with %q it has %v: %v", targets, got, set)
		}
	}
}

// In a function, the provider needs to know whose it is, and takes its targets from
// its settings; one that looks no plan up has it without a catalog.
func TestAFunctionHasTheProvider(t *testing.T) {
	set := map[string]string{EnvProviders: ProviderCloudFormation, EnvStack: "Longshore"}
	d := Deployed{Getenv: func(name string) string { return set[name] }, Log: slog.New(slog.DiscardHandler)}
	if _, err := d.wired(); err == nil || !strings.Contains(err.Error(), EnvBroker) {
		t.Errorf("without an identity: %v", err)
	}
	set[EnvBroker], set[EnvAWSTargets] = "b", `{"targets": {"other": {"region": "eu-west-1"}}}`
	wired, err := d.wired()
	if err != nil {
		t.Fatal(err)
	}
	names, err := wired[ProviderCloudFormation].Targets(t.Context())
	if diff := cmp.Diff([]string{"default", "other"}, names); diff != "" || err != nil {
		t.Errorf("%v, targets -want +got:\n%s", err, diff)
	}
}

// A heard is a way to AWS that ends here: what was asked is kept, and nothing answers.
type heard struct{ bodies []string }

func (h *heard) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	h.bodies = append(h.bodies, string(body))
	return nil, errors.Join(errors.New("nothing answers"), err)
}

// The function that lists what exists takes another account's role for listing alone.
func TestListingTakesARoleForListing(t *testing.T) {
	set := map[string]string{EnvProviders: ProviderCloudFormation, EnvStack: "Longshore", EnvBroker: "b",
		EnvAWSTargets: `{"targets":
		{"another": {"role": "arn:aws:iam::222233334444:role/x", "external_id": "ours", "account": "222233334444"}}}`}
	for _, lists := range []bool{true, false} {
		h := &heard{}
		d := Deployed{Getenv: func(name string) string { return set[name] }, Log: slog.New(slog.DiscardHandler), lists: lists,
			Config: aws.Config{Region: "eu-central-1", HTTPClient: h,
				Credentials:      credentials.NewStaticCredentialsProvider("a", "b", ""),
				RetryMaxAttempts: 1}}
		wired, err := d.wired()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := wired[ProviderCloudFormation].Inventory.List(t.Context(), `{"target":"another"}`); err == nil {
			t.Error("nobody was asked, and something was listed")
		}
		asked := strings.Join(h.bodies, " ")
		if !strings.Contains(asked, "Action=AssumeRole&") || strings.Contains(asked, "&Policy=") != lists ||
			strings.Contains(asked, "CreateStack") {
			t.Errorf("lists %v: it asked %q", lists, asked)
		}
	}
}
