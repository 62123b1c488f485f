package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// dist stands in for the built functions.
var dist string

func TestMain(m *testing.M) {
	// The runtime says on each start that a version of Node.js is old.
	_ = os.Setenv("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1")
	os.Exit(func() int {
		defer jsii.Close()
		var err error
		if dist, err = os.MkdirTemp("", "longshore-infra-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dist) }()
		for _, name := range functionNames {
			if err := writeProgram(filepath.Join(dist, name), 183); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}())
}

// writeProgram makes the least that is an ELF program for a machine.
func writeProgram(dir string, machine byte) error {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01") // 64 bits, little-endian
	header[16], header[18], header[20] = 2, machine, 1
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
	DeletionPolicy, UpdateReplacePolicy string
}

func build(context map[string]any) (awscdk.Stack, error) {
	root := awscdk.NewApp(&awscdk.AppProps{Context: &context})
	settings, err := ReadSettings(func(name string) any { return root.Node().TryGetContext(&name) })
	settings.Code = dist
	if err != nil {
		return nil, err
	}
	return NewStack(root, settings), nil
}

func synthesized(context map[string]any) (template, error) {
	var out template
	stack, err := build(context)
	if err != nil {
		return out, err
	}
	text, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// The variants are made once each: it takes seconds.
var (
	usual  = sync.OnceValues(func() (template, error) { return synthesized(nil) })
	chosen = sync.OnceValues(func() (template, error) {
		return synthesized(map[string]any{
			ContextStack: "Other", ContextArchitecture: "x86_64", ContextDemoDelay: "250ms", ContextLogDays: "7",
			ContextThrottleRate: "5", ContextThrottleBurst: "9", ContextCLICredentials: "true",
			FunctionAPI + ContextConcurrency: "20", FunctionReaper + ContextConcurrency: "1",
		})
	})
)

func must(t *testing.T, variant func() (template, error)) template {
	t.Helper()
	out, err := variant()
	if err != nil {
		t.Fatalf("making the template: %v", err)
	}
	return out
}

// of lists the ids of the resources of a type, in order.
func (t template) of(kind string) []string {
	var ids []string
	for id, r := range t.Resources {
		if r.Type == kind {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// one is the only resource of a type whose id begins so.
func (t template) one(tb testing.TB, kind, prefix string) map[string]any {
	tb.Helper()
	var found []string
	for _, id := range t.of(kind) {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		tb.Fatalf("resources of type %q that begin with %q: %q, want one", kind, prefix, found)
	}
	return t.Resources[found[0]].Properties
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
		var parts []string
		for _, part := range v {
			parts = append(parts, plain(part))
		}
		return strings.Join(parts, " ")
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
				var all []string
				for _, part := range parts[1].([]any) {
					all = append(all, plain(part))
				}
				return strings.Join(all, parts[0].(string))
			}
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func unhashed(id string) string {
	if strings.HasPrefix(id, "AWS::") || len(id) <= 8 || strings.Trim(id[len(id)-8:], "0123456789ABCDEF") != "" {
		return id
	}
	return id[:len(id)-8]
}
