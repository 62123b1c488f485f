package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/broker"
)

// The names of the settings that come from the environment. This list is the
// only one: whatever sets them uses these names.
const (
	// Of the embedded broker.
	EnvUsername = "LONGSHORE_USERNAME"
	EnvPassword = "LONGSHORE_PASSWORD"
	// Of the embedded broker and of the functions.
	EnvMinRetryAfter = "LONGSHORE_MIN_RETRY_AFTER" // bounds of Retry-After
	EnvMaxRetryAfter = "LONGSHORE_MAX_RETRY_AFTER"
	EnvPlatformRate  = "LONGSHORE_PLATFORM_RATE"  // requests a second that each platform may send; 0 for as many as it likes
	EnvReaperDryRun  = "LONGSHORE_REAPER_DRY_RUN" // true: what no record knows of is only reported
	// Of the functions: where things are.
	EnvStack        = "LONGSHORE_STACK"         // name of the stack, for its metrics, and for its table to say whose it is
	EnvBroker       = "LONGSHORE_BROKER"        // the broker's own identity, which its things carry
	EnvTable        = "LONGSHORE_TABLE"         // name of the table
	EnvKey          = "LONGSHORE_KEY"           // ARN of the key that seals
	EnvSecret       = "LONGSHORE_SECRET"        // ARN of the platforms' credentials
	EnvStateMachine = "LONGSHORE_STATE_MACHINE" // ARN of the state machine
	EnvProvisioner  = "LONGSHORE_PROVISIONER"   // ARN of the provisioner function
	EnvRole         = "LONGSHORE_ROLE"          // RoleCalls for the function inside a VPC, unset for all others
	EnvCalls        = "LONGSHORE_CALLS"         // ARN of the function inside a VPC
	EnvInVPC        = "LONGSHORE_IN_VPC"        // names of the providers that it calls, with commas between them
	EnvProviders    = "LONGSHORE_PROVIDERS"     // names of the providers that the stack has, with commas between them
)

// RoleCalls is the provisioner's role inside a VPC, where it only makes the calls
// of providers.
const RoleCalls = "calls"

// Settings are what the embedded broker is started with.
type Settings struct {
	// Listen is HOST:PORT.
	Listen string
	// Data is the folder that holds everything the broker keeps.
	Data string
	// Username and Password are the platform's credentials; both empty lets
	// the broker generate and keep them.
	Username, Password string
	// Servers are the values of the flags that say where the servers of providers are, by
	// the names of HostedFlags. They may hold passwords.
	Servers map[string]string
	// AWS offers AWS services, as EnvAWS does.
	AWS bool
	// Getenv gives the providers' own settings; nil for none.
	Getenv func(string) string
	// RetryAfter bounds the Retry-After of answers.
	RetryAfter RetryAfter
	// PlatformRate is how many requests a second each platform may send; zero for
	// as many as it likes.
	PlatformRate int
	// ReaperDryRun makes the reaper only report what no record knows of.
	ReaperDryRun bool
}

// RetryAfter are the bounds of the header Retry-After.
type RetryAfter struct{ Min, Max time.Duration }

// maxPlatformRate is more than a broker can answer.
const maxPlatformRate = 100_000

// Complete adds the environment to the settings of the command line, and checks them
// all.
func (s Settings) Complete(getenv func(string) string) (Settings, error) {
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		return s, advice.For("--listen", fmt.Sprintf("%q is not HOST:PORT", s.Listen), "give one such as 127.0.0.1:8080")
	}
	if s.Data == "" {
		return s, advice.For("--data", "is empty", "name the folder in which the broker keeps its records")
	}
	s.Username, s.Password = getenv(EnvUsername), getenv(EnvPassword)
	switch {
	case s.Username == "" && s.Password != "":
		return s, advice.For(EnvUsername, "is not set although "+EnvPassword+" is", "set both, or neither")
	case s.Username != "" && s.Password == "":
		return s, advice.For(EnvPassword, "is not set although "+EnvUsername+" is", "set both, or neither")
	case strings.Contains(s.Username, ":"): // RFC 7617: the first colon ends the user name
		return s, advice.For(EnvUsername, "has a colon", "choose a user name without one")
	}
	var retryErr, dryErr, rateErr error
	s.Getenv = WithFlags(s.Servers, s.AWS, getenv)
	s.RetryAfter, retryErr = retryAfter(getenv)
	s.ReaperDryRun, dryErr = flagIn(getenv, EnvReaperDryRun)
	s.PlatformRate, rateErr = platformRate(getenv)
	return s, errors.Join(checkProviders(s.Getenv), retryErr, dryErr, rateErr)
}

// platformRate reads how many requests a second each platform may send.
func platformRate(getenv func(string) string) (int, error) {
	text := getenv(EnvPlatformRate)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxPlatformRate {
		what := fmt.Sprintf("%q is not a whole number from 0 to %d", text, maxPlatformRate)
		return 0, advice.For(EnvPlatformRate, what, "give the requests a second that each platform may send, or 0 for no limit")
	}
	return n, nil
}

// durationIn reads a duration from least to most; unset is what it is unless it is set.
func durationIn(getenv func(string) string, name string, unset, least, most time.Duration) (time.Duration, error) {
	text := getenv(name)
	if text == "" {
		return unset, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, advice.For(name, fmt.Sprintf("%q is not a duration from %v to %gh", text, least, most.Hours()),
			"give one such as 3s")
	}
	return d, nil
}

// retryAfter reads the bounds of Retry-After, which counts whole seconds.
func retryAfter(getenv func(string) string) (RetryAfter, error) {
	least, err1 := durationIn(getenv, EnvMinRetryAfter, broker.MinRetryAfter, time.Second, time.Hour)
	most, err2 := durationIn(getenv, EnvMaxRetryAfter, broker.MaxRetryAfter, time.Second, time.Hour)
	r := RetryAfter{least, most}
	if err := errors.Join(err1, err2); err != nil {
		return r, err
	}
	if r.Min > r.Max {
		return r, advice.For(EnvMinRetryAfter, fmt.Sprintf("%v is more than %s, which is %v", r.Min, EnvMaxRetryAfter, r.Max),
			"give the smaller one here")
	}
	return r, nil
}
