package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/cloudcontroller"
)

// errTryFailed says that a trial was made, and that something failed.
var errTryFailed = errors.New("the trial has failed")

// A trial is what `longshore try` was called with.
type trial struct {
	client                     *cloudcontroller.Client
	service, plan              string
	parameters, bindParameters map[string]any
	bind, key, keep            bool
	transcript                 string
}

func try(ctx context.Context, args []string, getenv func(string) string, out, diagnostics io.Writer) error {
	t, err := tryFlags(args, getenv)
	if err != nil {
		return err
	}
	write := func(exchanges []cloudcontroller.Exchange) error { return transcribe(out, exchanges) }
	if t.transcript != "" && t.transcript != "-" { // before the work, not after it
		f, err := os.OpenFile(t.transcript, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
		if err != nil {
			return &cannotRun{fmt.Errorf("opening the file of the transcript: %w", err)}
		}
		write = func(exchanges []cloudcontroller.Exchange) error {
			return errors.Join(transcribe(f, exchanges), f.Close())
		}
	}
	l := &life{trial: t, out: out, line: newProgress(diagnostics), now: time.Now}
	err = l.live(ctx)
	if t.transcript != "" {
		if failed := write(l.exchanges); failed != nil {
			return errors.Join(err, fmt.Errorf("writing the transcript: %w", failed))
		}
	}
	return err
}

// tryFlags reads the command line of `longshore try`.
func tryFlags(args []string, getenv func(string) string) (trial, error) {
	c := &cloudcontroller.Client{
		HTTP: cloudcontroller.HTTP(nil), Now: time.Now, Sleep: pause, NewID: guid, UserID: guid(),
		// What is orphaned is deleted here, and not for 34 hours.
		KeepOrphans: true,
	}
	t := trial{client: c}
	flags := flag.NewFlagSet("try", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.Credential.Username, "username", getenv(app.EnvUsername), "")
	flags.StringVar(&c.Credential.Password, "password", getenv(app.EnvPassword), "")
	flags.StringVar(&t.service, "service", "", "")
	flags.StringVar(&t.plan, "plan", "", "")
	flags.BoolVar(&t.bind, "bind", true, "")
	flags.BoolVar(&t.key, "key", false, "")
	flags.BoolVar(&t.keep, "keep", false, "")
	flags.StringVar(&t.transcript, "transcript", "", "")
	flags.DurationVar(&c.PollLimit, "timeout", 10*time.Minute, "")
	flags.DurationVar(&c.MinInterval, "interval", time.Second, "")
	version := flags.String("api-version", "2."+strconv.Itoa(cloudcontroller.NewestMinor), "")
	parameters := flags.String("parameters", "", "")
	bind := flags.String("bind-parameters", "", "")
	urls, err := interspersed(flags, args)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return t, err
		}
		return t, &usageError{err.Error()}
	}
	wrong := func(format string, args ...any) (trial, error) {
		return t, &usageError{fmt.Sprintf(format, args...)}
	}
	if c.APIVersion, err = minorOf(*version, oldestMinor, cloudcontroller.NewestMinor); err != nil {
		return t, err
	}
	if json.Unmarshal([]byte(cmp.Or(*parameters, "null")), &t.parameters) != nil {
		return wrong("--parameters is not a JSON object")
	}
	if json.Unmarshal([]byte(cmp.Or(*bind, "null")), &t.bindParameters) != nil {
		return wrong("--bind-parameters is not a JSON object")
	}
	switch {
	case c.PollLimit <= 0 || c.MinInterval <= 0:
		return wrong("--timeout and --interval are above zero")
	case len(urls) != 1:
		return wrong("try takes one URL, not %d", len(urls))
	case c.Credential.Username == "" || c.Credential.Password == "":
		return wrong("try needs --username and --password, or %s and %s", app.EnvUsername, app.EnvPassword)
	}
	c.URL = urls[0]
	return t, nil
}

// oldestMinor is the oldest version that a platform can be told to speak.
const oldestMinor = 9

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// guid is a random id in the form that platforms give.
func guid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// transcribe writes what was said, one paragraph for each exchange.
func transcribe(out io.Writer, exchanges []cloudcontroller.Exchange) error {
	var b strings.Builder
	for _, e := range exchanges {
		status := "no answer"
		if e.Status != 0 {
			status = strconv.Itoa(e.Status)
		}
		fmt.Fprintf(&b, "\n%7.2fs  %s %s\n          %s after %v: %s\n          → %s\n",
			e.Began.Sub(exchanges[0].Began).Seconds(), e.Method, e.Path, status, e.Took.Round(time.Millisecond), e.Said, e.Decided)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
