// Package app holds what all programs share: the names of their settings, how the settings are
// read, and the times of the functions. It knows providers only by name. The packages below it
// wire the other packages, each for one program.
package app

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/broker"
)

// The names of the settings that come from the environment. This list is the only one: programs
// that set them use these names.
const (
	// For the embedded broker.
	EnvAWS      = "LONGSHORE_AWS" // true: AWS services are offered
	EnvUsername = "LONGSHORE_USERNAME"
	EnvPassword = "LONGSHORE_PASSWORD"
	// For the embedded broker and the functions.
	EnvMinRetryAfter = "LONGSHORE_MIN_RETRY_AFTER" // bounds of Retry-After
	EnvMaxRetryAfter = "LONGSHORE_MAX_RETRY_AFTER"
	EnvPlatformRate  = "LONGSHORE_PLATFORM_RATE"  // requests a second that each platform may send; 0 for no limit
	EnvDemoDelay     = "LONGSHORE_DEMO_DELAY"     // how long the demo's asynchronous steps take
	EnvAWSTargets    = "LONGSHORE_AWS_TARGETS"    // plan.Targets as JSON, or the path of a file that holds it
	EnvAWSEmulated   = "LONGSHORE_AWS_EMULATED"   // true: AWS is emulated, and puts no token on a stack's events
	EnvReaperDryRun  = "LONGSHORE_REAPER_DRY_RUN" // true: things that no record knows are only reported
	// For the functions: where things are.
	EnvStack        = "LONGSHORE_STACK"         // name of the stack, for its metrics and for the identity of its table
	EnvBroker       = "LONGSHORE_BROKER"        // the broker's own identity, which its things carry
	EnvTable        = "LONGSHORE_TABLE"         // name of the table of records
	EnvKey          = "LONGSHORE_KEY"           // ARN of the key that seals
	EnvSecret       = "LONGSHORE_SECRET"        // ARN of the platforms' credentials
	EnvStateMachine = "LONGSHORE_STATE_MACHINE" // ARN of the state machine
	EnvProvisioner  = "LONGSHORE_PROVISIONER"   // ARN of the provisioner function
	EnvRole         = "LONGSHORE_ROLE"          // RoleCalls for the function inside a VPC, unset for all others
	EnvCalls        = "LONGSHORE_CALLS"         // ARN of the function inside a VPC
	EnvInVPC        = "LONGSHORE_IN_VPC"        // names of the providers that are called inside the VPC, separated by commas
	EnvProviders    = "LONGSHORE_PROVIDERS"     // names of the stack's providers, separated by commas
)

// The names of the providers in offering files.
const (
	ProviderCloudFormation = "cloudformation"
	ProviderDemo           = "demo"
	ProviderMariaDB        = "mariadb"
	ProviderPostgres       = "postgres"
	ProviderValkey         = "valkey"
)

// RetryAfter holds the bounds of the header Retry-After.
type RetryAfter struct{ Min, Max time.Duration }

// maxPlatformRate is higher than any rate that a broker can answer.
const maxPlatformRate = 100_000

// Flag reads a setting that is true or false; unset is false.
func Flag(getenv func(string) string, name string) (bool, error) {
	text := getenv(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, advice.For(name, fmt.Sprintf("%q is neither true nor false", text), "give one of them, or leave it out")
	}
	return on, nil
}

// PlatformRate reads how many requests a second each platform may send.
func PlatformRate(getenv func(string) string) (int, error) {
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

// duration reads a duration from least to most; if it is not set, the result is unset.
func duration(getenv func(string) string, name string, unset, least, most time.Duration) (time.Duration, error) {
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

// ReadRetryAfter reads the bounds of Retry-After, which counts whole seconds.
func ReadRetryAfter(getenv func(string) string) (RetryAfter, error) {
	least, err1 := duration(getenv, EnvMinRetryAfter, broker.MinRetryAfter, time.Second, time.Hour)
	most, err2 := duration(getenv, EnvMaxRetryAfter, broker.MaxRetryAfter, time.Second, time.Hour)
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

// DefaultDemoDelay is the demo's delay if none is set.
const DefaultDemoDelay = 3 * time.Second

// DemoDelay reads EnvDemoDelay.
func DemoDelay(getenv func(string) string) (time.Duration, error) {
	return duration(getenv, EnvDemoDelay, DefaultDemoDelay, 0, 24*time.Hour)
}
