package deployed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// ofABroker is a secret of a platform that logs in as broker, with the password first; lets requires that a password is let in,
// or is not.
func ofABroker(t *testing.T, cfg aws.Config, now func() time.Time) (s Secret, lets func(password string, want bool)) {
	t.Helper()
	made := expect.Get(secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String(emulator.Name("secret")), SecretString: aws.String(`{"username":"broker","password":"first"}`)}))(t)
	s = NewSecret(cfg, *made.ARN)
	known := expect.Get(platforms.NewKept(t.Context(), s.Registry, now, slog.New(slog.DiscardHandler)))(t)
	return s, func(password string, want bool) {
		t.Helper()
		if _, ok := known.Authenticate("broker", password); ok != want {
			t.Errorf("%v: the password %q is let in: %v", now(), password, ok)
		}
	}
}

// AUTH-08: with a stack, the commands change the secret that the functions read: a rotated password logs in beside the old one
// until the end that is told, the default platform's user name is nobody else's, and of two changes at once one is refused.
func TestPlatformsOfAStack(t *testing.T) {
	clock := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	secret, lets := ofABroker(t, emulator.Config(t), func() time.Time { return clock })
	rotate := func(to string) func(platforms.Registry) (platforms.Registry, error) {
		return func(r platforms.Registry) (platforms.Registry, error) {
			return r.Rotate(platforms.Default, to, clock, 2*time.Minute)
		}
	}
	expect.OK(t, secret.Change(t.Context(), rotate("second")))
	end := platforms.EndOfOverlap(clock, 2*time.Minute)
	clock = clock.Add(platforms.Spread)
	lets("second", true)
	lets("first", true)
	clock = end.Add(-time.Second)
	lets("first", true)
	clock = end
	lets("first", false)
	lets("second", true)

	err := secret.Change(t.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		return r.Add(platforms.Platform{Name: "broker", Credential: platforms.Credential{Username: "broker", Password: "x"}},
			"p-1", clock)
	})
	expect.Says(t, "a platform of the default one's user name", fmt.Sprint(err), "choose another name")
	err = secret.Change(t.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		expect.OK(t, secret.Change(context.WithoutCancel(t.Context()), rotate("third")))
		return r.Rotate(platforms.Default, "lost", clock, 0)
	})
	expect.Fails(t, "of two changes at once the second ended with", platforms.ErrChanging, err)
	clock = clock.Add(time.Minute)
	lets("third", true)
	lets("lost", false)
}

// forgetful loses the first answer to each kind of call that has an effect on a secret.
type forgetful struct {
	aws.HTTPClient
	lost map[string]bool
}

func (f forgetful) Do(r *http.Request) (*http.Response, error) {
	answer, err := f.HTTPClient.Do(r)
	call := r.Header.Get("X-Amz-Target")
	if err != nil || f.lost[call] || strings.HasSuffix(call, ".GetSecretValue") {
		return answer, err
	}
	f.lost[call] = true
	return nil, errors.Join(io.ErrUnexpectedEOF, answer.Body.Close())
}

// A change that was made is nobody else's, although its answer was lost and the call was repeated.
func TestAChangeWhoseAnswerIsLostIsMade(t *testing.T) {
	cfg, now := emulator.Config(t), time.Now()
	secret, lets := ofABroker(t, cfg, func() time.Time { return now })
	loses := forgetful{cfg.HTTPClient, map[string]bool{}}
	cfg.HTTPClient = loses
	expect.OK(t, NewSecret(cfg, secret.arn).Change(t.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		return r.Rotate(platforms.Default, "second", now, 0)
	}))
	expect.Same(t, "calls whose answer was lost", 2, len(loses.lost))
	now = now.Add(platforms.Spread)
	lets("second", true)
}

// Lambda logs a panic's value, and Step Functions keeps it in the history of the execution: neither gets to see it.
func TestAFunctionsPanicIsAnErrorWithoutItsValue(t *testing.T) {
	var log bytes.Buffer
	d := Parts{Log: slog.New(slog.NewJSONHandler(&log, nil))}
	err := func() (err error) {
		defer d.Recovered(context.Background(), &err)
		panic("canary-90d4")
	}()
	if err == nil || strings.Contains(err.Error()+log.String(), "canary-90d4") ||
		!strings.Contains(log.String(), "secret_test.go") {
		t.Errorf("error %v, log: %s", err, log.String())
	}
}
