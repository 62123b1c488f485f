package main

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/provider/hosted/secrets"
)

// The names of the context values of a deployment: `cdk deploy -c name=value`.
const (
	ContextStack          = "stack"
	ContextArchitecture   = "architecture"
	ContextOfferings      = "offerings"
	ContextMinRetryAfter  = "min-retry-after"
	ContextMaxRetryAfter  = "max-retry-after"
	ContextReaperDryRun   = "reaper-dry-run"
	ContextTracing        = "tracing"
	ContextLogDays        = "log-days"
	ContextThrottleRate   = "throttle-rate"
	ContextThrottleBurst  = "throttle-burst"
	ContextBasePath       = "base-path"
	ContextDomain         = "domain"
	ContextCertificate    = "certificate"
	ContextHostedZone     = "hosted-zone"
	ContextAllowCIDRs     = "allow-cidrs"
	ContextWebACL         = "web-acl"
	ContextPlatformRate   = "platform-rate"
	ContextReserved       = "reserved-concurrency"
	ContextAlarmTopic     = "alarm-topic"
	ContextAlarmEmail     = "alarm-email"
	ContextDashboard      = "dashboard"
	ContextSubnets        = "subnets"
	ContextSecurityGroups = "security-groups"
	ContextTable          = "table"
	ContextKey            = "key"
	ContextSecret         = "secret"
	ContextKeyRotation    = "key-rotation-days"
	ContextBroker         = "broker"
	ContextCLICredentials = "cli-credentials"
	ContextCode           = "code"
	// ContextConcurrency is a suffix to the name of a function.
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

// Settings are the settings of a deployment.
type Settings struct {
	// Stack is the name of the stack, from which the names of its resources derive.
	Stack        string
	Architecture string
	// Offerings is a folder of the operator's own offerings, relative to the
	// repository; empty for none.
	Offerings string
	// Providers has the state of each provider.
	Providers map[string]string
	// DemoDelay is how long an operation of the demo takes; empty for the demo's default.
	DemoDelay string
	// Servers are the servers of the providers on shared servers, by provider; nil for none.
	Servers map[string]Servers
	// Services are the settings of AWS services.
	Services Services
	// MinRetryAfter and MaxRetryAfter bound the pause after which clients are told to ask again;
	// empty for the broker's defaults.
	MinRetryAfter, MaxRetryAfter string
	// ReaperDryRun, if it is "true", makes the reaper report orphans without removing them.
	ReaperDryRun string
	LogDays      int
	// Tracing makes X-Ray record requests and executions.
	Tracing Tracing
	// Dashboard adds a dashboard in CloudWatch.
	Dashboard bool
	// ThrottleRate is the average number of requests a second that are accepted, and ThrottleBurst
	// the number of requests at once.
	ThrottleRate, ThrottleBurst int
	// PlatformRate is the average number of requests a second that one platform may send; zero for
	// no limit of its own.
	PlatformRate int
	// Allowed are the only addresses that may call the broker, as CIDR blocks; empty for all.
	Allowed []string
	// WebACL is the ARN of a web ACL, or WebACLBuilt; empty for none.
	WebACL string
	// Domain is the host name of the broker's URL, Certificate the ARN of a certificate for it, and
	// HostedZone the id of the zone to record it in; all are empty for none.
	Domain, Certificate, HostedZone string
	// Concurrency reserves a number of concurrent executions for a function. The other functions
	// share the executions of the account: a new account has so few that none can be reserved.
	Concurrency map[string]int
	// BasePath is the path before the broker's paths if it is not the stage's name, such as one
	// that a custom domain maps.
	BasePath string
	// AlarmTopic is the ARN of an SNS topic that receives alarms, AlarmEmail an address that does;
	// both are empty if nobody does.
	AlarmTopic, AlarmEmail string
	// InVPC names the providers whose calls are made inside the VPC; without any, no function runs there.
	InVPC []string
	VPC   VPC
	// Table and Key are the state of a removed stack to go on with; empty for a new state. Secret
	// is the ARN of that stack's logins of platforms: without it, platforms get new credentials,
	// and further platforms must be added again by their ids.
	Table, Key, Secret string
	// KeyRotation is the number of days after which the stack's own key is rotated.
	KeyRotation int
	// Broker is the identity of the broker that the table belongs to; empty for a new identity,
	// which is the stack's own random id.
	Broker string
	// CLICredentials makes the deployment use the caller's own rights, without the roles of `cdk bootstrap`.
	CLICredentials bool
	// Code is the folder with the folders of the functions.
	Code string
}

// retentions are the numbers of days for which CloudWatch can keep logs.
var retentions = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365}

// The forms of values.
var (
	// basePath is also the form of the stage variable; mapped is the form of a path that a domain can map to an API.
	basePath       = regexp.MustCompile(`^(/([A-Za-z0-9._~-]|\{api\})+)+$`)
	mapped         = regexp.MustCompile(`^/[A-Za-z0-9._-]+$`)
	stackName      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)
	tableName      = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	keyARN         = regexp.MustCompile(`^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`)
	brokerIdentity = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)
	topicARN       = regexp.MustCompile(`^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$`)
	webACLARN      = regexp.MustCompile(`^arn:[a-z-]+:wafv2:[a-z0-9-]+:[0-9]{12}:regional/webacl/[A-Za-z0-9_-]+/[a-f0-9-]+$`)
	certificateARN = regexp.MustCompile(`^arn:[a-z-]+:acm:[a-z0-9-]+:[0-9]{12}:certificate/[A-Za-z0-9-]+$`)
	zoneID         = regexp.MustCompile(`^Z[A-Z0-9]{1,31}$`)
	domainName     = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$`)
	email          = regexp.MustCompile(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)
)

// ReadSettings reads the settings from the context, which returns nil for a value that is not set.
// The error names everything that is wrong.
func ReadSettings(context func(name string) any) (Settings, error) {
	r := reader{context: context}
	s := Settings{
		Stack:          r.text(ContextStack, "Longshore"),
		Architecture:   r.text(ContextArchitecture, ARM64),
		Offerings:      r.text(ContextOfferings, ""),
		MinRetryAfter:  r.text(ContextMinRetryAfter, ""),
		MaxRetryAfter:  r.text(ContextMaxRetryAfter, ""),
		ReaperDryRun:   r.text(ContextReaperDryRun, ""),
		Tracing:        Tracing(r.flag(ContextTracing)),
		Dashboard:      r.flag(ContextDashboard),
		LogDays:        r.number(ContextLogDays, 30, 1),
		ThrottleRate:   r.number(ContextThrottleRate, 50, 1),
		ThrottleBurst:  r.number(ContextThrottleBurst, 100, 1),
		BasePath:       r.text(ContextBasePath, ""),
		Allowed:        r.list(ContextAllowCIDRs),
		WebACL:         r.text(ContextWebACL, ""),
		Domain:         r.form(ContextDomain, domainName, "a name such as broker.example.com, in lower-case letters"),
		Certificate:    r.form(ContextCertificate, certificateARN, "the ARN of a certificate of ACM, in the stack's region"),
		HostedZone:     r.form(ContextHostedZone, zoneID, "the id of a hosted zone of Route 53, such as Z0123456789ABC"),
		VPC:            VPC{Subnets: r.list(ContextSubnets), SecurityGroups: r.list(ContextSecurityGroups)},
		AlarmTopic:     r.form(ContextAlarmTopic, topicARN, "the ARN of an SNS topic"),
		AlarmEmail:     r.form(ContextAlarmEmail, email, "an address such as operators@example.com"),
		Table:          r.form(ContextTable, tableName, "the name of a table"),
		Key:            r.form(ContextKey, keyARN, "the ARN of a key of KMS"),
		Secret:         r.form(ContextSecret, secrets.ARN, "the whole ARN of a secret of Secrets Manager"),
		KeyRotation:    r.number(ContextKeyRotation, 365, leastRotation),
		Broker:         r.form(ContextBroker, brokerIdentity, "the identity that the other stack gave as its output Broker"),
		CLICredentials: r.flag(ContextCLICredentials),
		Concurrency:    map[string]int{},
		Providers:      map[string]string{},
		Code:           r.text(ContextCode, "../dist"),
	}
	s.readProviders(&r)
	// By default, one platform leaves half of the rate to the others.
	s.PlatformRate = r.number(ContextPlatformRate, (s.ThrottleRate+1)/2, 0)
	if r.context(ContextReserved) != nil {
		s.Concurrency[FunctionProvisioner] = r.number(ContextReserved, 1, 1)
		s.Concurrency[FunctionReaper] = 1 // a second concurrent sweep would add nothing
	}
	for _, name := range functionNames {
		if r.context(name+ContextConcurrency) != nil {
			s.Concurrency[name] = r.number(name+ContextConcurrency, 0, 0)
		}
	}
	s.check(&r)
	return s, errors.Join(r.problems...)
}

// The bounds of KMS for the days between two rotations.
const leastRotation, mostRotation = 90, 2560

// contextNames returns all names that ReadSettings asks for.
func contextNames() []string {
	names := map[string]bool{}
	_, _ = ReadSettings(func(name string) any {
		names[name] = true
		return nil
	})
	return slices.Sorted(maps.Keys(names))
}

// unknown returns the given names that are not ours, such as a misspelt one. The CDK's own names
// have a colon or an at sign.
func unknown(given []string) []string {
	ours := contextNames()
	return slices.DeleteFunc(slices.Sorted(slices.Values(given)), func(name string) bool {
		return slices.Contains(ours, name) || strings.ContainsAny(name, ":@")
	})
}

// check collects everything that is wrong with the settings.
func (s Settings) check(r *reader) {
	if !stackName.MatchString(s.Stack) {
		r.refuse(ContextStack, s.Stack, "a name of up to 64 letters, digits and hyphens that begins with a letter")
	}
	s.checkReach(r)
	s.checkState(r)
	s.checkVPC(r)
	if s.Architecture != ARM64 && s.Architecture != X8664 {
		r.refuse(ContextArchitecture, s.Architecture, ARM64+" or "+X8664)
	}
	// The package that reads these settings checks each of them.
	r.check(ContextMinRetryAfter+" and "+ContextMaxRetryAfter, map[string]string{
		app.EnvMinRetryAfter: s.MinRetryAfter, app.EnvMaxRetryAfter: s.MaxRetryAfter,
	})
	r.check(ContextReaperDryRun, map[string]string{app.EnvReaperDryRun: s.ReaperDryRun})
	if !slices.Contains(retentions, s.LogDays) {
		var days []string
		for _, n := range retentions {
			days = append(days, strconv.Itoa(n))
		}
		r.refuse(ContextLogDays, strconv.Itoa(s.LogDays), "one of "+strings.Join(days, ", "))
	}
}

// checkReach checks who can reach the broker and how, and who receives alarms.
func (s Settings) checkReach(r *reader) {
	if s.BasePath != "" && !basePath.MatchString(s.BasePath) {
		r.refuse(ContextBasePath, s.BasePath, "a path such as /broker, without a slash at its end")
	} else if s.Domain != "" && s.BasePath != "" && !mapped.MatchString(s.BasePath) {
		r.refuse(ContextBasePath, s.BasePath, "with "+ContextDomain+", a path of one part such as /broker")
	}
	for _, cidr := range s.Allowed {
		if p, err := netip.ParsePrefix(cidr); err != nil || p != p.Masked() {
			r.refuse(ContextAllowCIDRs, cidr, "blocks of addresses such as 192.0.2.0/24, with commas between them")
		}
	}
	if s.PlatformRate > s.ThrottleRate {
		r.refuse(ContextPlatformRate, strconv.Itoa(s.PlatformRate),
			fmt.Sprintf("no more than %s, which is %d for all", ContextThrottleRate, s.ThrottleRate))
	}
	if s.WebACL != WebACLBuilt {
		r.match(ContextWebACL, s.WebACL, webACLARN, WebACLBuilt+", or the ARN of a regional web ACL of WAF v2")
	}
	if s.WebACL == WebACLBuilt && s.PlatformRate == 0 {
		r.refuse(ContextWebACL, s.WebACL, ContextPlatformRate+" too: it is what the ACL holds platforms to")
	}
	if (s.Domain == "") != (s.Certificate == "") || s.HostedZone != "" && s.Domain == "" {
		r.wrong("context %s and %s: give both, or neither, and %s only with them",
			ContextDomain, ContextCertificate, ContextHostedZone)
	}
	if s.AlarmTopic != "" && s.AlarmEmail != "" {
		r.wrong("context %s and %s: give one of them; a topic can write to several addresses",
			ContextAlarmTopic, ContextAlarmEmail)
	}
}

// checkState checks the state of a former stack.
func (s Settings) checkState(r *reader) {
	if (s.Table == "") != (s.Key == "") {
		r.wrong("context %s and %s: give both, of a stack that was removed, or neither", ContextTable, ContextKey)
	}
	if s.Secret != "" && s.Table+s.Key == "" {
		r.wrong("context %s: give %s and %s of the same stack too", ContextSecret,
			ContextTable, ContextKey)
	}
	if s.KeyRotation > mostRotation {
		r.refuse(ContextKeyRotation, strconv.Itoa(s.KeyRotation), fmt.Sprintf("at most %d", mostRotation))
	}
}

// A reader reads values of the context, and collects what is wrong with them.
type reader struct {
	context  func(name string) any
	problems []error
}

func (r *reader) wrong(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

func (r *reader) refuse(name, value, want string) {
	r.wrong("context %s is %q: give %s", name, value, want)
}

// check reads settings with the code of the functions that use them.
func (r *reader) check(name string, environment map[string]string) {
	getenv := func(name string) string { return environment[name] }
	_, retryErr := app.ReadRetryAfter(getenv)
	_, rateErr := app.PlatformRate(getenv)
	_, dryErr := app.Flag(getenv, app.EnvReaperDryRun)
	if err := errors.Join(providers.CheckSettings(getenv), retryErr, dryErr, rateErr); err != nil {
		r.wrong("context %s: %w", name, err)
	}
}

func (r *reader) text(name, unset string) string {
	value := r.context(name)
	if value == nil {
		return unset
	}
	return fmt.Sprint(value)
}

// match refuses a value that is set but does not match its form.
func (r *reader) match(name, value string, form *regexp.Regexp, want string) {
	if value != "" && !form.MatchString(value) {
		r.refuse(name, value, want)
	}
}

// form reads a value that must match a form if it is set.
func (r *reader) form(name string, form *regexp.Regexp, want string) string {
	value := r.text(name, "")
	r.match(name, value, form, want)
	return value
}

// list reads a comma-separated list.
func (r *reader) list(name string) []string {
	text := r.text(name, "")
	if text == "" {
		return nil
	}
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		out = append(out, strings.TrimSpace(part))
	}
	empty := func(part string) bool { return part == "" }
	if slices.ContainsFunc(out, empty) {
		r.refuse(name, text, "values with one comma between two of them, and none at either end")
	}
	return slices.DeleteFunc(out, empty) // other checks are told of what is there
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

func (r *reader) flag(name string) bool {
	value := r.text(name, "false")
	set, err := strconv.ParseBool(value)
	if err != nil {
		r.refuse(name, value, "true or false")
	}
	return set
}
