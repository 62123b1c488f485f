package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
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
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/internal/provider/hosted/secrets"
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

// Settings are the settings of a deployment. Those of the schema are read from JSON.
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
	DemoDelay string `json:"demo-delay"`
	// Servers are the servers of the providers on shared servers, by provider; nil for none.
	Servers map[string]Servers
	// Services are the settings of AWS services.
	Services Services
	// MinRetryAfter and MaxRetryAfter bound the pause after which clients are told to ask again;
	// empty for the broker's defaults.
	MinRetryAfter string `json:"min-retry-after"`
	MaxRetryAfter string `json:"max-retry-after"`
	// ReaperDryRun, if it is "true", makes the reaper report orphans without removing them.
	ReaperDryRun string `json:"reaper-dry-run"`
	LogDays      int    `json:"log-days"`
	// Tracing makes X-Ray record requests and executions.
	Tracing Tracing
	// Dashboard adds a dashboard in CloudWatch.
	Dashboard bool
	// ThrottleRate is the average number of requests a second that are accepted, and ThrottleBurst
	// the number of requests at once.
	ThrottleRate  int `json:"throttle-rate"`
	ThrottleBurst int `json:"throttle-burst"`
	// PlatformRate is the average number of requests a second that one platform may send; zero for
	// no limit of its own.
	PlatformRate int `json:"platform-rate"`
	// Allowed are the only addresses that may call the broker, as CIDR blocks; empty for all.
	Allowed []string `json:"allow-cidrs"`
	// WebACL is the ARN of a web ACL, or WebACLBuilt; empty for none.
	WebACL string `json:"web-acl"`
	// Domain is the host name of the broker's URL, Certificate the ARN of a certificate for it, and
	// HostedZone the id of the zone to record it in; all are empty for none.
	Domain, Certificate string
	HostedZone          string `json:"hosted-zone"`
	// Concurrency reserves a number of concurrent executions for a function. The other functions
	// share the executions of the account: a new account has so few that none can be reserved.
	Concurrency map[string]int
	// BasePath is the path before the broker's paths if it is not the stage's name, such as one
	// that a custom domain maps.
	BasePath string `json:"base-path"`
	// AlarmTopic is the ARN of an SNS topic that receives alarms, AlarmEmail an address that does;
	// both are empty if nobody does.
	AlarmTopic string `json:"alarm-topic"`
	AlarmEmail string `json:"alarm-email"`
	// InVPC names the providers whose calls are made inside the VPC; without any, no function runs there.
	InVPC []string
	VPC
	// Table and Key are the state of a removed stack to go on with; empty for a new state. Secret
	// is the ARN of that stack's logins of platforms: without it, platforms get new credentials,
	// and further platforms must be added again by their ids.
	Table, Key, Secret string
	// KeyRotation is the number of days after which the stack's own key is rotated.
	KeyRotation int `json:"key-rotation-days"`
	// Broker is the identity of the broker that the table belongs to; empty for a new identity,
	// which is the stack's own random id.
	Broker string
	// CLICredentials makes the deployment use the caller's own rights, without the roles of `cdk bootstrap`.
	CLICredentials bool `json:"cli-credentials"`
	// Code is the folder with the folders of the functions.
	Code string
}

//go:embed settings.schema.json
var settingsText []byte

// ofSettings is the schema of settings that are not a provider's own.
var ofSettings = schema.Own("settings", settingsText)

// keyARN is the form of the ARN of a key.
var keyARN = regexp.MustCompile(`^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`)

// ReadSettings reads the settings from the context, which returns nil for a value that is not set.
// The error names everything that is wrong.
func ReadSettings(context func(name string) any) (Settings, error) {
	r := reader{context: context, given: map[string]any{}}
	text := r.read()
	s := Settings{Concurrency: map[string]int{}, Providers: map[string]string{}}
	_ = json.Unmarshal(text, &s) // what has another type is refused already, and left out
	s.readProviders(&r)
	if r.given["platform-rate"] == nil {
		s.PlatformRate = (s.ThrottleRate + 1) / 2 // one platform leaves half of the rate to the others
	}
	if n, reserved := r.given["reserved-concurrency"].(int); reserved {
		s.Concurrency[FunctionProvisioner] = n
		s.Concurrency[FunctionReaper] = 1 // a second concurrent sweep would add nothing
	}
	for _, name := range functionNames {
		if n, reserved := r.given[name+"-concurrency"].(int); reserved {
			s.Concurrency[name] = n
		}
	}
	s.check(&r)
	return s, errors.Join(r.problems...)
}

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

// check collects what is wrong with the settings beyond what their schema says.
func (s Settings) check(r *reader) {
	s.checkVPC(r)
	for _, cidr := range s.Allowed {
		if p, err := netip.ParsePrefix(cidr); err != nil || p != p.Masked() {
			r.refuse("allow-cidrs", cidr, "blocks of addresses such as 192.0.2.0/24, with commas between them")
		}
	}
	if s.PlatformRate > s.ThrottleRate && s.ThrottleRate > 0 {
		r.refuse("platform-rate", s.PlatformRate,
			fmt.Sprintf("no more than throttle-rate, which is %d for all", s.ThrottleRate))
	}
	// Other settings and package secrets use these forms too, so the schema does not repeat them.
	r.match("key", s.Key, keyARN, "the ARN of a key of KMS")
	r.match("secret", s.Secret, secrets.ARN, "the whole ARN of a secret of Secrets Manager")
	// The code of the functions that use these settings checks them.
	for names, environment := range sorted.Map(map[string]map[string]string{
		"demo-delay": {app.EnvDemoDelay: s.DemoDelay},
		"min-retry-after and max-retry-after": {
			app.EnvMinRetryAfter: s.MinRetryAfter, app.EnvMaxRetryAfter: s.MaxRetryAfter,
		},
		"reaper-dry-run": {app.EnvReaperDryRun: s.ReaperDryRun},
	}) {
		getenv := func(name string) string { return environment[name] }
		_, retryErr := app.ReadRetryAfter(getenv)
		_, dryErr := app.Flag(getenv, app.EnvReaperDryRun)
		if err := errors.Join(providers.CheckSettings(getenv), retryErr, dryErr); err != nil {
			r.wrong("context %s: %w", names, err)
		}
	}
}

// A reader reads values of the context, and collects what is wrong with them.
type reader struct {
	context  func(name string) any
	given    map[string]any // the values of the schema's settings
	problems []error
}

// read reads the settings of the schema, lets it judge them, and returns them as JSON.
func (r *reader) read() []byte {
	var declared struct {
		Properties map[string]struct {
			Type    string
			Default any
		}
	}
	_ = json.Unmarshal(settingsText, &declared) // it is a schema
	for name, its := range sorted.Map(declared.Properties) {
		value := cmp.Or(r.context(name), its.Default)
		// An empty text is as if nothing were given, except for what always has a value, and for numbers.
		if value != nil && (value != "" || its.Default != nil || its.Type == "integer") {
			r.given[name] = r.value(name, its.Type, fmt.Sprint(value))
		}
	}
	text, _ := json.Marshal(r.given) // texts, numbers, truths and lists of texts
	given, _ := schema.Parse(text)
	for _, v := range schema.Sorted(ofSettings().Explain(given)) {
		name, item, _ := strings.Cut(strings.TrimPrefix(v.Member, "/"), "/")
		if name == "" { // a rule about several
			r.wrong("context %s", v.Remedy)
			continue
		}
		value := r.context(name)
		if list, is := r.given[name].([]string); is {
			i, _ := strconv.Atoi(item)
			value = list[i]
		}
		r.refuse(name, value, v.Remedy)
	}
	return text
}

// value returns the value of a text by its type, or the text if that is none.
func (r *reader) value(name, kind, text string) (value any) {
	var err error
	switch kind {
	case "integer":
		value, err = strconv.Atoi(text)
	case "boolean":
		value, err = strconv.ParseBool(text)
	case "array":
		value = r.list(name)
	default:
		value = text
	}
	if err != nil {
		return text
	}
	return value
}

func (r *reader) wrong(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

func (r *reader) refuse(name string, value any, want string) {
	r.wrong("context %s is %q: give %s", name, fmt.Sprint(value), want)
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
