package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"

	"github.com/longshore/longshore/internal/app"
)

// The names of what may be chosen at deploy: `cdk deploy -c name=value`.
const (
	ContextStack          = "stack"
	ContextArchitecture   = "architecture"
	ContextDemoDelay      = "demo-delay"
	ContextMinRetryAfter  = "min-retry-after"
	ContextMaxRetryAfter  = "max-retry-after"
	ContextReaperDryRun   = "reaper-dry-run"
	ContextTracing        = "tracing"
	ContextLogDays        = "log-days"
	ContextThrottleRate   = "throttle-rate"
	ContextThrottleBurst  = "throttle-burst"
	ContextBasePath       = "base-path"
	ContextAlarmTopic     = "alarm-topic"
	ContextTable          = "table"
	ContextKey            = "key"
	ContextSecret         = "secret"
	ContextBroker         = "broker"
	ContextCLICredentials = "cli-credentials"
	// ContextConcurrency follows on the name of a function.
	ContextConcurrency = "-concurrency"
)

// The functions, by the names of their folders.
const (
	FunctionAPI         = "api"
	FunctionProvisioner = "provisioner"
	FunctionReaper      = "reaper"
)

var functionNames = []string{FunctionAPI, FunctionProvisioner, FunctionReaper}

// The architectures of functions, as Lambda names them.
const (
	ARM64 = "arm64"
	X8664 = "x86_64"
)

// Settings are what a deployment is made with.
type Settings struct {
	// Stack names the stack, and with it all that it holds.
	Stack        string
	Architecture string
	// DemoDelay is how long the demo's asynchronous steps take; empty leaves
	// it to the demo.
	DemoDelay string
	// MinRetryAfter and MaxRetryAfter bound when clients are told to ask again;
	// empty leaves it to the broker.
	MinRetryAfter, MaxRetryAfter string
	// ReaperDryRun, if it is "true", has what no record knows of reported only.
	ReaperDryRun string
	LogDays      int
	// Tracing has X-Ray see how requests and executions pass.
	Tracing Tracing
	// ThrottleRate is how many requests a second are taken on average, and
	// ThrottleBurst how many at once.
	ThrottleRate, ThrottleBurst int
	// Concurrency reserves a number of executions at once for a function. A
	// function that is not in it shares what the account has: a new account
	// has so little that nothing can be reserved.
	Concurrency map[string]int
	// BasePath is what clients put before the broker's paths where it is not
	// the stage's name: what a custom domain maps to the API.
	BasePath string
	// AlarmTopic is the ARN of a topic of SNS that is told of alarms; empty for
	// none.
	AlarmTopic string
	// Table and Key are the state of a stack that was removed, to go on with;
	// empty for a new one. Secret is the ARN of what its platforms log in with:
	// without it they get new credentials, and those that were added are to be
	// added again by their ids.
	Table, Key, Secret string
	// Broker is the identity of the broker that the table is of; empty for a new
	// one, which gets the stack's own random id.
	Broker string
	// CLICredentials deploys by the caller's own rights, without the roles of
	// `cdk bootstrap`.
	CLICredentials bool
	// Code is the folder that holds each function's folder.
	Code string
}

// retentions are the numbers of days that CloudWatch can keep logs for.
var retentions = map[int]awslogs.RetentionDays{
	1: awslogs.RetentionDays_ONE_DAY, 3: awslogs.RetentionDays_THREE_DAYS, 5: awslogs.RetentionDays_FIVE_DAYS,
	7: awslogs.RetentionDays_ONE_WEEK, 14: awslogs.RetentionDays_TWO_WEEKS, 30: awslogs.RetentionDays_ONE_MONTH,
	60: awslogs.RetentionDays_TWO_MONTHS, 90: awslogs.RetentionDays_THREE_MONTHS, 120: awslogs.RetentionDays_FOUR_MONTHS,
	150: awslogs.RetentionDays_FIVE_MONTHS, 180: awslogs.RetentionDays_SIX_MONTHS, 365: awslogs.RetentionDays_ONE_YEAR,
}

// basePath is also what the value of a stage's variable may hold.
var basePath = regexp.MustCompile(`^(/([A-Za-z0-9._~-]|\{api\})+)+$`)

var (
	tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	keyARN    = regexp.MustCompile(`^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`)
	// Secrets Manager puts a hyphen and six characters after the name.
	secretARN = regexp.MustCompile(`^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$`)
)

var brokerIdentity = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)

var topicARN = regexp.MustCompile(`^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$`)

var stackName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)

// ReadSettings reads the context, which gives nil for what is not set. The
// error names everything that is wrong.
func ReadSettings(context func(name string) any) (Settings, error) {
	r := reader{context: context}
	s := Settings{
		Stack:          r.text(ContextStack, "Longshore"),
		Architecture:   r.text(ContextArchitecture, ARM64),
		DemoDelay:      r.text(ContextDemoDelay, ""),
		MinRetryAfter:  r.text(ContextMinRetryAfter, ""),
		MaxRetryAfter:  r.text(ContextMaxRetryAfter, ""),
		ReaperDryRun:   r.text(ContextReaperDryRun, ""),
		Tracing:        Tracing(r.flag(ContextTracing, true)),
		LogDays:        r.number(ContextLogDays, 30, 1),
		ThrottleRate:   r.number(ContextThrottleRate, 50, 1),
		ThrottleBurst:  r.number(ContextThrottleBurst, 100, 1),
		BasePath:       r.text(ContextBasePath, ""),
		AlarmTopic:     r.text(ContextAlarmTopic, ""),
		Table:          r.text(ContextTable, ""),
		Key:            r.text(ContextKey, ""),
		Secret:         r.text(ContextSecret, ""),
		Broker:         r.text(ContextBroker, ""),
		CLICredentials: r.flag(ContextCLICredentials, false),
		Concurrency:    map[string]int{},
		Code:           "../dist",
	}
	for _, name := range functionNames {
		if r.context(name+ContextConcurrency) != nil {
			s.Concurrency[name] = r.number(name+ContextConcurrency, 0, 0)
		}
	}
	s.check(&r)
	return s, errors.Join(r.problems...)
}

// check collects what is wrong with the settings.
func (s Settings) check(r *reader) {
	if !stackName.MatchString(s.Stack) {
		r.refuse(ContextStack, s.Stack, "a name of up to 64 letters, digits and hyphens that begins with a letter")
	}
	if s.BasePath != "" && !basePath.MatchString(s.BasePath) {
		r.refuse(ContextBasePath, s.BasePath, "a path such as /broker, without a slash at its end")
	}
	if s.AlarmTopic != "" && !topicARN.MatchString(s.AlarmTopic) {
		r.refuse(ContextAlarmTopic, s.AlarmTopic, "the ARN of an SNS topic")
	}
	if (s.Table == "") != (s.Key == "") {
		r.problems = append(r.problems, fmt.Errorf("context %s and %s: give both, of a stack that was removed, or neither", ContextTable, ContextKey))
	}
	if s.Secret != "" && s.Table+s.Key == "" {
		r.problems = append(r.problems, fmt.Errorf("context %s: give %s and %s of the same stack too", ContextSecret, ContextTable, ContextKey))
	}
	if s.Secret != "" && !secretARN.MatchString(s.Secret) {
		r.refuse(ContextSecret, s.Secret, "the whole ARN of a secret of Secrets Manager")
	}
	if s.Broker != "" && !brokerIdentity.MatchString(s.Broker) {
		r.refuse(ContextBroker, s.Broker, "the identity that the other stack gave as its output Broker")
	}
	if s.Table != "" && !tableName.MatchString(s.Table) {
		r.refuse(ContextTable, s.Table, "the name of a table")
	}
	if s.Key != "" && !keyARN.MatchString(s.Key) {
		r.refuse(ContextKey, s.Key, "the ARN of a key of KMS")
	}
	if s.Architecture != ARM64 && s.Architecture != X8664 {
		r.refuse(ContextArchitecture, s.Architecture, ARM64+" or "+X8664)
	}
	// The room that will read these is asked about each.
	r.check(ContextDemoDelay, map[string]string{app.EnvDemoDelay: s.DemoDelay})
	r.check(ContextMinRetryAfter+" and "+ContextMaxRetryAfter, map[string]string{
		app.EnvMinRetryAfter: s.MinRetryAfter, app.EnvMaxRetryAfter: s.MaxRetryAfter,
	})
	r.check(ContextReaperDryRun, map[string]string{app.EnvReaperDryRun: s.ReaperDryRun})
	if _, ok := retentions[s.LogDays]; !ok {
		r.refuse(ContextLogDays, strconv.Itoa(s.LogDays), "one of "+numbers(retentions))
	}
}

// numbers lists the keys of a table in order.
func numbers[V any](table map[int]V) string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(table)) {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ", ")
}

// A reader collects what is wrong while it reads.
type reader struct {
	context  func(name string) any
	problems []error
}

func (r *reader) refuse(name, value, want string) {
	r.problems = append(r.problems, fmt.Errorf("context %s is %q: give %s", name, value, want))
}

// check has the settings read as the functions will read them.
func (r *reader) check(name string, environment map[string]string) {
	_, err := app.Settings{Listen: ":0", Data: "-"}.Complete(func(name string) string { return environment[name] })
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("context %s: %w", name, err))
	}
}

func (r *reader) text(name, unset string) string {
	value := r.context(name)
	if value == nil {
		return unset
	}
	return fmt.Sprint(value)
}

func (r *reader) number(name string, unset, least int) int {
	value := r.text(name, strconv.Itoa(unset))
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		r.refuse(name, value, fmt.Sprintf("a whole number from %d", least))
		return unset
	}
	return n
}

func (r *reader) flag(name string, unset bool) bool {
	value := r.text(name, strconv.FormatBool(unset))
	set, err := strconv.ParseBool(value)
	if err != nil {
		r.refuse(name, value, "true or false")
	}
	return set
}
