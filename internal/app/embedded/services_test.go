package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// refusing stands before an emulated AWS, where the SDK finds it and asks once only. It refuses so many calls.
func refusing(t *testing.T, cfg aws.Config) *atomic.Int32 {
	t.Helper()
	var refuses atomic.Int32
	onward := httputil.NewSingleHostReverseProxy(expect.Get(url.Parse(*cfg.BaseEndpoint))(t))
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
	return &refuses
}

// The embedded broker goes on without AWS services until they are asked for and their account is prepared, and says the command.
// Where they were used before, it waits for an AWS that does not answer.
func TestAWSIsLeftOutUntilItIsPrepared(t *testing.T) {
	refuses := refusing(t, emulator.Config(t))
	set := map[string]string{}
	e := embedding{folder: "my data", offerings: "mine's", broker: emulator.Name("broker"), now: app.Now,
		log: slog.New(slog.DiscardHandler), offered: catalogtest.AWS(t, map[string]string{"queues": "sqs:CreateQueue"}),
		getenv: func(name string) string { return set[name] }, wait: waiting.For}
	left := func(want string) {
		t.Helper()
		w := expect.Get(cloudformationEmbedded(e))(t)
		expect.Same(t, "it is left out", true, w.Absent != nil)
		expect.Says(t, "the reason", fmt.Sprint(w.Absent), want)
	}
	left("--aws is not given")
	set[app.EnvAWS] = "true"
	left("run AWS_REGION=us-east-1 longshore aws bootstrap --data 'my data' --offerings 'mine'\\''s'")
	preparing := bootstrap.Options{Scope: plan.ScopeOf(e.broker), Offered: e.offered, Every: time.Millisecond, Say: t.Logf}
	err := errors.New("not yet asked")
	for tries := 0; err != nil && tries < 3; tries++ { // the emulator may cut off an answer, and the SDK may ask once only
		t.Log(err)
		_, err = bootstrap.Run(t.Context(), preparing)
	}
	expect.OK(t, err)
	if w := expect.Get(cloudformationEmbedded(e))(t, "prepared"); w.Provider == nil || w.Inventory == nil || w.Targets == nil {
		t.Errorf("prepared: %+v", w)
	}
	targetsAreNamed(t, e, set)
	refusedStarts(t, e, refuses)
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	left("it runs at AWS_ENDPOINT_URL")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	left("set AWS_PROFILE")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	e.used = true
	expect.Get(cloudformationEmbedded(e))(t, "used before, and AWS does not answer")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	left("AWS_REGION is not set")
}

// Another region of the broker's own account is prepared as its own region is; another account, by its name and for the broker.
func targetsAreNamed(t *testing.T, e embedding, set map[string]string) {
	t.Helper()
	var said strings.Builder
	e.log = slog.New(slog.NewTextHandler(&said, nil))
	set[app.EnvAWSTargets] = `{"targets": {"there": {"region": "eu-west-1"}, "other": {"region": "eu-west-2",
		"role": "arn:aws:iam::222233334444:role/x", "external_id": "ours"}}}`
	expect.Get(cloudformationEmbedded(e))(t)
	delete(set, app.EnvAWSTargets)
	expect.Says(t, "the log", said.String(),
		`run AWS_REGION=eu-west-1 longshore aws bootstrap --data 'my data' --offerings 'mine'\\''s'"`,
		`run AWS_REGION=eu-west-2 longshore aws bootstrap --data 'my data' --offerings 'mine'\\''s' --target other `+
			`--trust 000000000000"`)
}

// The start repeats a refused call. A broker that used AWS before keeps its offerings however
// long AWS refuses; one that did not leaves them out, and says so in the log.
func refusedStarts(t *testing.T, e embedding, refuses *atomic.Int32) {
	t.Helper()
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
		var said strings.Builder
		waited := 0
		e.used, e.log = tc.used, slog.New(slog.NewTextHandler(&said, nil))
		e.wait = func(context.Context, time.Duration) error {
			if waited++; waited == 5 {
				return context.DeadlineExceeded
			}
			return nil
		}
		refuses.Store(tc.refused)
		w := expect.Get(cloudformationEmbedded(e))(t, name)
		refuses.Store(0)
		if is := w.Absent == nil; is != tc.wired || is != (w.Provider != nil) || waited != tc.waits {
			t.Errorf("%s: %s: wired %v, after %d waits", name, tc.reason, w.Provider, waited)
		}
		if strings.Contains(said.String(), "level=WARN") != tc.warns {
			t.Errorf("%s: %s: the log says %s", name, tc.reason, said.String())
		}
	}
}

// Both shapes have the same providers.
func TestTheEmbeddedBrokerHasEachProvider(t *testing.T) {
	expect.Same(t, "providers", providers.Names(), slices.Sorted(maps.Keys(rows())))
}
