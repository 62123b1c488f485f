package main

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/test/expect"
)

// dist stands in for the built functions.
var dist string

// within is set in the process that the tests run in.
const within = "LONGSHORE_TESTS_OF_INFRA"

// The tests run in a process of their own. What jsii reads of the environment it has read before TestMain begins; and
// jsii.Close, once Node.js has been started, races with a goroutine of jsii that ends it as well. Within, it is not called:
// Node.js ends with the process that it reads from, and what is left in the temporary folder goes together with the folder.
func TestMain(m *testing.M) {
	if os.Getenv(within) == "" {
		code, err := runWithin()
		jsii.Close() // which was not started
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	var err error
	dist, err = os.MkdirTemp("", "dist-")
	for _, name := range functionNames {
		err = errors.Join(err, writeProgram(filepath.Join(dist, name), byte(elf.EM_AARCH64)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runWithin gives the exit code of the tests.
func runWithin() (code int, err error) {
	dir, err := os.MkdirTemp("", "longshore-infra-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := os.Executable()
	if err != nil {
		return 1, err
	}
	tests := exec.Command(program, os.Args[1:]...)
	tests.Stdin, tests.Stdout, tests.Stderr = os.Stdin, os.Stdout, os.Stderr
	// That one of these versions of Node.js is old is for whoever deploys.
	tests.Env = append(os.Environ(), within+"=1", "TMPDIR="+dir, "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20,22,24")
	var failed *exec.ExitError
	if err := tests.Run(); errors.As(err, &failed) && failed.Exited() {
		return failed.ExitCode(), nil
	} else if err != nil {
		return 1, fmt.Errorf("running the tests: %w", err)
	}
	return 0, nil
}

// notELF stands for no machine: what is written is a program of another system.
const notELF byte = 255

// writeProgram makes the least that is an ELF program for a machine.
func writeProgram(dir string, machine byte) error {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01") // 64 bits, little-endian
	header[16], header[18], header[20] = 2, machine, 1
	if machine == notELF {
		copy(header, "\xcf\xfa\xed\xfe")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, handler), header, 0o755)
}

// A template is what CloudFormation would be given.
type template struct {
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
}

type resource struct {
	Type                                string
	Properties                          map[string]any
	DependsOn                           []string
	DeletionPolicy, UpdateReplacePolicy string
}

// build makes a stack; the demo is its only provider unless the context says otherwise.
func build(context map[string]any) (awscdk.Stack, error) {
	with := map[string]any{"demo": "true"}
	maps.Copy(with, context)
	context = with
	root := awscdk.NewApp(&awscdk.AppProps{Context: &context})
	settings, err := ReadSettings(func(name string) any { return root.Node().TryGetContext(&name) })
	settings.Code = dist
	if err != nil {
		return nil, err
	}
	return NewStack(root, settings), nil
}

func synthesized(context map[string]any) (made template, err error) {
	stack, err := build(context)
	if err == nil {
		made, err = templateOf(stack)
	}
	return made, err
}

func templateOf(stack awscdk.Stack) (out template, err error) {
	text, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// The names of context values.
const (
	ContextStack          = "stack"
	ContextArchitecture   = "architecture"
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
	ContextConcurrency    = "-concurrency"
)

// choices are a deployment for which everything is chosen otherwise.
var choices = map[string]any{
	ContextStack: "Other", ContextArchitecture: "x86_64", "demo-delay": "250ms", ContextMinRetryAfter: "2s",
	ContextMaxRetryAfter: "20s", ContextReaperDryRun: "true", ContextTracing: "true", ContextDashboard: "true",
	ContextLogDays: "7", ContextThrottleRate: "5", ContextThrottleBurst: "9", ContextPlatformRate: "4",
	ContextCLICredentials: "true", FunctionAPI + ContextConcurrency: "20", FunctionReaper + ContextConcurrency: "1",
	ContextKeyRotation: "2560", ContextAllowCIDRs: "192.0.2.0/24, 2001:db8::/32", ContextWebACL: WebACLBuilt,
	ContextAlarmEmail: "ops@example.com", ContextDomain: "broker.example.com",
	ContextCertificate: "arn:aws:acm:eu-central-1:111122223333:certificate/c", ContextHostedZone: "Z1",
}

// The variants are made once each: it takes seconds.
var (
	usual  = sync.OnceValues(func() (template, error) { return synthesized(nil) })
	chosen = sync.OnceValues(func() (template, error) { return synthesized(choices) })
)

var variants = map[string]func() (template, error){"Usual": usual, "Chosen": chosen}

func must(t *testing.T, variant func() (template, error)) template {
	t.Helper()
	return expect.Get(variant())(t, "making the template")
}

// of lists the ids of the resources of a type, in order.
func (t template) of(kind string) []string {
	return slices.Sorted(maps.Keys(t.all(kind)))
}

// all are the properties of the resources of a type, by their ids.
func (t template) all(kind string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for id, r := range t.Resources {
		if r.Type == kind {
			out[id] = r.Properties
		}
	}
	return out
}

// one is the properties of the only resource of a type whose id begins so.
func (t template) one(tb testing.TB, kind, prefix string) map[string]any {
	tb.Helper()
	return t.Resources[t.id(tb, kind, prefix)].Properties
}

// id is the id of the only resource of a type that begins so.
func (t template) id(tb testing.TB, kind, prefix string) string {
	tb.Helper()
	found := slices.DeleteFunc(t.of(kind), func(id string) bool { return !strings.HasPrefix(id, prefix) })
	if len(found) != 1 {
		tb.Fatalf("resources of type %q that begin with %q: %q, want one", kind, prefix, found)
	}
	return found[0]
}

// at goes down into what JSON gave; a member that is absent is nil.
func at(value any, path ...string) any {
	for _, name := range path {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

// plain writes a value of a template on one line: references by the beginning
// of what they refer to, without the hash that CDK ends its ids with.
func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		return joined(v, " ")
	case map[string]any:
		if len(v) == 1 {
			switch {
			case v["Ref"] != nil:
				return "<" + unhashed(v["Ref"].(string)) + ">"
			case v["Fn::GetAtt"] != nil:
				parts := v["Fn::GetAtt"].([]any)
				return "<" + unhashed(parts[0].(string)) + "." + parts[1].(string) + ">"
			case v["Fn::Join"] != nil:
				parts := v["Fn::Join"].([]any)
				return joined(parts[1].([]any), parts[0].(string))
			}
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func joined(values []any, separator string) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, plain(v))
	}
	return strings.Join(parts, separator)
}

func unhashed(id string) string {
	if strings.HasPrefix(id, "AWS::") || len(id) <= 8 || strings.Trim(id[len(id)-8:], "0123456789ABCDEF") != "" {
		return id
	}
	return id[:len(id)-8]
}
