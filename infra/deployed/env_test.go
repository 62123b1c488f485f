package main

import (
	"bytes"
	"context"
	"errors"
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
	tests := map[string]struct {
		reason  string
		content string
		url     string
		want    string
	}{
		"Stacks": {
			"without a URL it is what the stack says", `{"username":"broker","password":"Pa55word"}`, "",
			"export BROKER_URL=https://abc123.execute-api.eu-central-1.amazonaws.com/prod BROKER_USERNAME=broker " +
				"BROKER_PASSWORD=Pa55word\n",
		},
		"Given": {
			"an emulator's API is elsewhere", `{"username":"broker","password":"Pa55word"}`,
			"http://127.0.0.1:4566/restapis/{api}/prod/_user_request_",
			"export BROKER_URL=http://127.0.0.1:4566/restapis/abc123/prod/_user_request_ BROKER_USERNAME=broker " +
				"BROKER_PASSWORD=Pa55word\n",
		},
		"Quoted": {
			"what a shell would take for its own is quoted", `{"username":"a b","password":"it's $HOME"}`, "http://h/{api}?a&b",
			"export BROKER_URL='http://h/abc123?a&b' BROKER_USERNAME='a b' BROKER_PASSWORD='it'\\''s $HOME'\n",
		},
		"More": {
			"what else an operator keeps there is not our concern", `{"username":"broker","password":"Pa55word","note":"x"}`,
			"http://h", "export BROKER_URL=http://h BROKER_USERNAME=broker BROKER_PASSWORD=Pa55word\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			expect.OK(t, env(t.Context(), holding(test.content), said, test.url, &out), test.reason)
			expect.Same(t, test.reason, test.want, out.String())
		})
	}
}

// The error about a wrong secret repeats nothing of it.
func TestEnvKeepsTheSecret(t *testing.T) {
	const canary = "c4n4ry"
	tests := map[string]struct {
		reason string
		secret safe
		want   string
	}{
		"Text":     {"somebody put the mere password there", holding(canary), "is not a JSON object"},
		"Cut":      {"half of it is none of it", holding(`{"username":"broker","password":"` + canary), "is not a JSON object"},
		"Array":    {"JSON alone is not enough", holding(`["` + canary + `"]`), "is not a JSON object"},
		"Number":   {"a password is text", holding(`{"username":"` + canary + `","password":12345}`), "is not a JSON object"},
		"NoUser":   {"half a credential logs nobody in", holding(`{"password":"` + canary + `"}`), "is not a JSON object"},
		"Empty":    {"nor does an empty one", holding(`{"username":"` + canary + `","password":""}`), "is not a JSON object"},
		"Nothing":  {"null is no credential", holding(`null`), "is not a JSON object"},
		"NoString": {"a secret may be of bytes", safe{"secret-arn": {SecretBinary: []byte(canary)}}, "is not a JSON object"},
		"Gone":     {"somebody removed it", safe{}, "reading the platform's credential"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := env(t.Context(), test.secret, said, "", &out)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("%s: error %v, want %q without the secret", test.reason, err, test.want)
			}
			if out.Len() > 0 {
				t.Errorf("%s: it printed %q", test.reason, out.String())
			}
		})
	}
	var missing *types.ResourceNotFoundException
	if err := env(t.Context(), safe{}, said, "", &bytes.Buffer{}); !errors.As(err, &missing) {
		t.Errorf("what AWS said is not in %v", err)
	}
}

// A shell that evaluates the line has the words as they were, and has done
// nothing else.
func TestShellsReadTheLineAsItIsMeant(t *testing.T) {
	words := map[string]string{
		"Plain":     "abc-123_./:@%+,=",
		"Spaces":    " two  words ",
		"Quotes":    `it's "quoted" 'twice'`,
		"OnlyQuote": `'`,
		"Endings":   `'at both ends'`,
		"Commands":  "$(touch pwned) `touch pwned` ; touch pwned & touch pwned | touch pwned",
		"Variables": "$HOME ${HOME} $$ $?",
		"Patterns":  "* ? [a-z] {a,b} ~ ~root",
		"Home":      "~",
		"History":   "!! !1 ^a^b",
		"Escapes":   `\n \\ \' \`,
		"Lines":     "first\nsecond\r\n\ttabbed",
		"Comment":   "# no comment",
		"Arrows":    "a > pwned < /dev/null >> pwned",
		"Letters":   "pässwörd – 密码 🔑",
		"Option":    "-n",
		"Control":   "\x01\x1b[2J\x7f",
	}
	for _, shell := range []string{"bash", "sh"} {
		for name, word := range words {
			t.Run(shell+"/"+name, func(t *testing.T) {
				var line bytes.Buffer
				content := `{"username":` + jsonText(t, word) + `,"password":` + jsonText(t, word+"2") + `}`
				expect.OK(t, env(t.Context(), holding(content), said, "http://h/"+word, &line))
				command := exec.CommandContext(t.Context(), shell, "-c",
					`eval "$1"; printf '%s\0' "$BROKER_URL" "$BROKER_USERNAME" "$BROKER_PASSWORD"; ls -A`, "shell", line.String())
				command.Dir, command.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "HOME=/nowhere"}
				want := "http://h/" + word + "\x00" + word + "\x00" + word + "2\x00"
				expect.Same(t, "what the shell has", want, string(expect.Get(command.CombinedOutput())(t)))
			})
		}
	}
}

// No character is overlooked, wherever in a word it stands, and whether the
// word is assigned or an argument.
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
		command := exec.CommandContext(t.Context(), shell,
			append([]string{"-c", `for line; do eval "$line"; done`, "shell"}, lines...)...)
		command.Dir, command.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "HOME=/nowhere"}
		got := expect.Get(command.CombinedOutput())(t, shell)
		expect.Same(t, shell, want, strings.Split(strings.TrimSuffix(string(got), "\x00"), "\x00"))
	}
}
