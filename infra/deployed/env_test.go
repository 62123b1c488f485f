package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
)

// Safe holds secrets by their ids.
type safe map[string]*secretsmanager.GetSecretValueOutput

func (s safe) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput,
	_ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	if out := s[aws.ToString(in.SecretId)]; out != nil {
		return out, nil
	}
	return nil, &types.ResourceNotFoundException{Message: new("no such secret")}
}

func holding(content string) safe {
	return safe{"secret-arn": {SecretString: &content}}
}

var said = map[string]string{
	outputs.API: "abc123", outputs.URL: "https://abc123.execute-api.eu-central-1.amazonaws.com/prod",
	outputs.Secret: "secret-arn", outputs.Table: "records",
}

func TestEnv(t *testing.T) {
	for name, test := range map[string]struct {
		reason, content, url string
		want                 string
	}{
		"Stacks": {"without a URL it is what the stack says", `{"username":"broker","password":"Pa55word"}`, "",
			"https://abc123.execute-api.eu-central-1.amazonaws.com/prod BROKER_USERNAME=broker BROKER_PASSWORD=Pa55word"},
		"Given": {"an emulator's API is elsewhere", `{"username":"broker","password":"Pa55word"}`,
			"http://127.0.0.1:4566/restapis/{api}/prod/_user_request_",
			"http://127.0.0.1:4566/restapis/abc123/prod/_user_request_ BROKER_USERNAME=broker BROKER_PASSWORD=Pa55word"},
		"Quoted": {"what a shell would take for its own is quoted", `{"username":"a b","password":"it's $HOME"}`,
			"http://h/{api}?a&b", `'http://h/abc123?a&b' BROKER_USERNAME='a b' BROKER_PASSWORD='it'\''s $HOME'`},
		"More": {"what else an operator keeps there is not our concern",
			`{"username":"broker","password":"Pa55word","note":"x"}`, "http://h",
			"http://h BROKER_USERNAME=broker BROKER_PASSWORD=Pa55word"},
	} {
		var out bytes.Buffer
		expect.OK(t, env(t.Context(), holding(test.content), said, test.url, &out), name+": "+test.reason)
		expect.Same(t, name+": "+test.reason, "export BROKER_URL="+test.want+"\n", out.String())
	}
}

// The error about a wrong secret repeats nothing of it.
func TestEnvKeepsTheSecret(t *testing.T) {
	const canary = "c4n4ry"
	for name, test := range map[string]struct {
		reason string
		secret safe
	}{
		"Text":     {"somebody put the mere password there", holding(canary)},
		"Cut":      {"half of it is none of it", holding(`{"username":"broker","password":"` + canary)},
		"Array":    {"JSON alone is not enough", holding(`["` + canary + `"]`)},
		"Number":   {"a password is text", holding(`{"username":"` + canary + `","password":12345}`)},
		"NoUser":   {"half a credential logs nobody in", holding(`{"password":"` + canary + `"}`)},
		"Empty":    {"nor does an empty one", holding(`{"username":"` + canary + `","password":""}`)},
		"Nothing":  {"null is no credential", holding(`null`)},
		"NoString": {"a secret may be of bytes", safe{"secret-arn": {SecretBinary: []byte(canary)}}},
		"Gone":     {"somebody removed it", safe{}},
	} {
		var out bytes.Buffer
		want, err := "is not a JSON object", fmt.Sprint(env(t.Context(), test.secret, said, "", &out))
		if name == "Gone" {
			want = "reading the platform's credential"
		}
		expect.Says(t, name+": "+test.reason, err, want)
		expect.Never(t, name+": "+test.reason, err, canary)
		expect.Same(t, "what it printed", "", out.String())
	}
	err := env(t.Context(), safe{}, said, "", io.Discard)
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		t.Errorf("what AWS said is not in %v", err)
	}
}

// printed is what a script prints in a shell, in an empty folder.
func printed(t *testing.T, shell, script string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), shell, append([]string{"-c", script, "shell"}, args...)...)
	command.Dir, command.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "HOME=/nowhere"}
	return string(expect.Get(command.CombinedOutput())(t, shell))
}

// A shell that evaluates the line has the words as they were, and has done nothing else.
func TestShellsReadTheLineAsItIsMeant(t *testing.T) {
	for _, word := range []string{
		"abc-123_./:@%+,=", " two  words ", `it's "quoted" 'twice'`, `'`, `'at both ends'`, "$HOME ${HOME} $$ $?", "!! !1 ^a^b",
		"$(touch pwned) `touch pwned` ; touch pwned & touch pwned | touch pwned", "* ? [a-z] {a,b} ~ ~root", "~",
		`\n \\ \' \`, "first\nsecond\r\n\ttabbed", "# no comment", "a > pwned < /dev/null >> pwned", "pässwörd – 密码 🔑", "-n",
		"\x01\x1b[2J\x7f",
	} {
		var line bytes.Buffer
		content := `{"username":` + jsonOf(t, word) + `,"password":` + jsonOf(t, word+"2") + `}`
		expect.OK(t, env(t.Context(), holding(content), said, "http://h/"+word, &line))
		for _, shell := range []string{"bash", "sh"} {
			expect.Same(t, shell+" has", "http://h/"+word+"\x00"+word+"\x00"+word+"2\x00", printed(t, shell,
				`eval "$1"; printf '%s\0' "$BROKER_URL" "$BROKER_USERNAME" "$BROKER_PASSWORD"; ls -A`, line.String()))
		}
	}
}

// No character is overlooked, wherever in a word it stands, and whether the word is assigned or an argument.
func TestShellsTakeEveryCharacter(t *testing.T) {
	words := []string{""}
	for c := byte(1); c < 128; c++ {
		for _, form := range []string{"%", "%HOME", "x%", "x%y", "x:%root", "x=%root", "%%"} {
			words = append(words, strings.ReplaceAll(form, "%", string(rune(c))))
		}
	}
	var lines, want []string
	for _, word := range words {
		lines = append(lines, "W="+quote(word)+`; printf '%s\0' "$W" `+quote(word))
		want = append(want, word, word)
	}
	for _, shell := range []string{"bash", "sh"} {
		got := printed(t, shell, `for line; do eval "$line"; done`, lines...)
		expect.Same(t, shell, want, strings.Split(strings.TrimSuffix(got, "\x00"), "\x00"))
	}
}
