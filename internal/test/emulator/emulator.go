// Package emulator gives tests an emulated AWS, so that the adapters of AWS
// are tested by what answers as AWS does, and not by what we believe of it.
// It owns finding or starting the emulator and ending it; tables, keys and
// functions are made by the tests that need them, under names of their own.
//
// It uses whatever answers at AWS_ENDPOINT_URL. Without that it starts
// MiniStack, which `make emulator` installs, once for each test process, on a
// free port of this machine and with nothing of this process's environment.
package emulator

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/test/testserver"
)

const (
	region  = "us-east-1"
	account = "test" // the emulators take this for their own account

	// program is where `make emulator` puts MiniStack, from the module's root.
	program = ".tools/ministack-1.5.33/bin/ministack"

	endpointVariable = "AWS_ENDPOINT_URL"

	// startWait is generous: a busy machine needs several seconds.
	startWait  = time.Minute
	startTries = 3
)

// Config is for making clients of the emulated AWS. Where there is none the
// test fails: a suite that did not run proves nothing. Only `go test -short`
// skips it.
func Config(t testing.TB) aws.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an emulated AWS, which -short leaves out")
	}
	return config(t, endpoint)
}

// Enforcing is Config of a MiniStack that does what IAM's policies say, and knows
// each key: the config's own are the root's, who may do all. It is another one than
// Config's, and never one that runs already: whether that enforces is not known.
func Enforcing(t testing.TB) aws.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an emulated AWS, which -short leaves out")
	}
	return config(t, enforcing)
}

func config(t testing.TB, endpoint func() (string, error)) aws.Config {
	t.Helper()
	url, err := endpoint()
	if err != nil {
		t.Fatalf("no emulated AWS: %v", err)
	}
	return aws.Config{
		Region:       region,
		BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: account, SecretAccessKey: account}, nil
		}),
		HTTPClient: client{},
	}
}

// A client sends bodies from memory. The SDK closes a body as soon as the
// head of the answer is there, and where that comes quicker than the writer's
// last look at the body, as on one machine it may, the connection breaks.
type client struct{}

func (client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Name is a name that no other test has, of lower-case letters, digits and
// hyphens.
func Name(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:16])
}

// endpoint is the emulator's address, found or made by the first who asks.
var endpoint = sync.OnceValues(func() (string, error) {
	if url := os.Getenv(endpointVariable); url != "" {
		if err := answers(url, startWait); err != nil { // the first answer may take long
			return "", fmt.Errorf("%s is %q, where nothing answers: start it, or unset the variable: %w",
				endpointVariable, url, err)
		}
		return url, nil
	}
	return started()
})

// enforcing is the address of one that enforces, made by the first who asks.
var enforcing = sync.OnceValues(func() (string, error) { return started("AUTH=true") })

// started finds the program and runs it, with more in its environment.
func started(with ...string) (url string, err error) {
	path, err := find()
	if err != nil {
		return "", err
	}
	for range startTries {
		if url, err = start(path, with); err == nil {
			return url, nil
		}
	}
	return "", err
}

// find looks for the program that make has installed.
func find() (string, error) {
	path, err := testserver.Installed(program)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not installed: run `make emulator`, or set %s to one that runs", program, endpointVariable)
	}
	return path, nil
}

// start runs the program until this process ends.
func start(path string, with []string) (url string, err error) {
	port, err := testserver.FreePort()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "longshore-emulator-")
	if err != nil {
		return "", err
	}
	logPath := filepath.Join(dir, "log")
	url = "http://127.0.0.1:" + port
	exited, err := testserver.Launch(path, dir, logPath, append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"HOME=" + dir,
		"TMPDIR=" + dir,
		"STATE_DIR=" + filepath.Join(dir, "state"),
		"S3_DATA_DIR=" + filepath.Join(dir, "s3"),
		"BIND_HOST=127.0.0.1",
		"MINISTACK_HOST=127.0.0.1",
		"GATEWAY_PORT=" + port,
		"LOG_LEVEL=WARNING",
		"IOT_MTLS_ENABLED=0", // it would listen on all addresses
		// Functions inherit these, and so find the emulator.
		endpointVariable + "=" + url,
		"AWS_EC2_METADATA_DISABLED=true",
		// State machines wait a twentieth of what they are told.
		"SFN_WAIT_SCALE=0.05",
	}, with...))
	if err != nil {
		return "", fmt.Errorf("starting %q: %w", path, err)
	}
	deadline := time.After(startWait)
	for {
		if err = answers(url+"/_ministack/health", 2*time.Second); err == nil {
			return url, nil
		}
		select {
		case <-exited:
			return "", fmt.Errorf("%q ended at its start: %s", path, testserver.Tail(logPath))
		case <-deadline:
			return "", fmt.Errorf("%q did not answer within %v: %w: %s", path, startWait, err, testserver.Tail(logPath))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// answers reports whether there is an HTTP server; what it says does not
// matter.
func answers(url string, within time.Duration) error {
	client := http.Client{Timeout: within}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
