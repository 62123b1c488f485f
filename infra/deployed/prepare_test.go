package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// Context values are read as the CDK reads them.
func TestContextOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cdk.json")
	expect.OK(t, os.WriteFile(file, []byte(`{"app":"x","context":{"cloudformation":true,"offerings":"mine"}}`), 0o600))
	for _, test := range map[string]struct {
		reason string
		file   string
		words  []string
		want   map[string]string
	}{
		"Nothing": {"a file may be absent", "gone.json", nil, map[string]string{}},
		"File":    {"what stands in the file", file, nil, map[string]string{"cloudformation": "true", "offerings": "mine"}},
		"Words": {"words count more", file, []string{"-c", "offerings=other", "--context", "stack=S", "--context=a=b=c",
			"--profile", "p"},
			map[string]string{"cloudformation": "true", "offerings": "other", "stack": "S", "a": "b=c"}},
		"Cut": {"a word too few", "gone.json", []string{"-c"}, map[string]string{}},
	} {
		expect.Same(t, test.reason, test.want, expect.Get(contextOf(test.file, test.words))(t, test.reason))
	}
}

// A stack without AWS services leaves the account as it is; with them, a second time changes nothing.
func TestPrepare(t *testing.T) {
	config := emulator.Config(t)
	key := expect.Get(config.Credentials.Retrieve(t.Context()))(t)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": *config.BaseEndpoint, "AWS_REGION": config.Region, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": key.AccessKeyID, "AWS_SECRET_ACCESS_KEY": key.SecretAccessKey,
	} {
		t.Setenv(name, value)
	}
	stack := emulator.Name("Stack")
	for _, step := range []struct{ state, want, never string }{
		{"false", "", "account"}, {"true", "prepared", " 0 resources are new"},
		{"withdrawn", " 0 resources are new, 0 have changed", "\x00"},
	} {
		var out bytes.Buffer
		expect.OK(t, prepare(t.Context(), stack, map[string]string{"cloudformation": step.state}, &out,
			&bytes.Buffer{}), step.state)
		if !strings.Contains(out.String(), step.want) || strings.Contains(out.String(), step.never) {
			t.Errorf("%s: it says %q, want %q", step.state, out.String(), step.want)
		}
	}
}
