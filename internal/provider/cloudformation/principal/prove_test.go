package principal_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/test/expect"
)

type httpFunc func(*http.Request) (*http.Response, error)

func (f httpFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// asked is what a proof asks, and what comes of an answer.
func asked(t *testing.T, proof *plan.Proof, values map[string]string, status int, answer string) (text []string, ok bool,
	said string) {
	t.Helper()
	cfg := aws.Config{Region: "eu-west-1", HTTPClient: httpFunc(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = []string{r.Method + " " + r.URL.String(), r.Header.Get("Content-Type"), string(body)}
		auth := r.Header.Get("Authorization")
		if !strings.Contains(auth, "Credential=AKIA1/20300102/eu-west-1/") || strings.Contains(auth, "the secret") {
			t.Errorf("signed as %q", auth)
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})}
	now := func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }
	key := principal.Key{ID: "AKIA1", Secret: "the secret"}
	ok, said, err := principal.NewProver(cfg, now).Prove(t.Context(), key, proof, values)
	expect.OK(t, err)
	return text, ok, said
}

func TestProofs(t *testing.T) {
	const json, form = "application/x-amz-json-1.1", "application/x-www-form-urlencoded; charset=utf-8"
	values := map[string]string{"V": `a b"&?/`, "Bucket": "bucket", plan.ValueSuffix: "amazonaws.com.cn"}
	for name, tc := range map[string]struct {
		proof *plan.Proof
		want  []string
	}{
		"Whose": {nil, []string{"POST https://sts.eu-west-1.amazonaws.com.cn/", form,
			"Action=GetCallerIdentity&Version=2011-06-15"}},
		"Path": {&plan.Proof{Service: "s3", Method: "GET", Path: "/${Bucket}?list-type=2&prefix=${V}"},
			[]string{"GET https://s3.eu-west-1.amazonaws.com.cn/bucket?list-type=2&prefix=a%20b%22%26%3F%2F", "", ""}},
		"InJSON": {&plan.Proof{Service: "sqs", Headers: map[string]string{"content-type": json}, Body: `{"Q":"${V}"}`},
			[]string{"POST https://sqs.eu-west-1.amazonaws.com.cn/", json, `{"Q":"a b\"\u0026?/"}`}},
		"InAForm": {&plan.Proof{Service: "sns", Body: `Action=X&Arn=${V}`},
			[]string{"POST https://sns.eu-west-1.amazonaws.com.cn/", form, `Action=X&Arn=a+b%22%26%3F%2F`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, said := asked(t, tc.proof, values, 200, "")
			if diff := cmp.Diff(tc.want, got); diff != "" || !ok || said != "" {
				t.Errorf("proved %v, said %q (-want +got):\n%s", ok, said, diff)
			}
		})
	}
}

func TestRefusedProofs(t *testing.T) {
	for answer, want := range map[string]string{
		`<Error><Code>InvalidAccessKeyId</Code><Message>AKIA1</Message></Error>`:       "403 InvalidAccessKeyId",
		`{"__type":"com.amazonaws.sqs#AccessDeniedException","message":"User: arn:x"}`: "403 AccessDeniedException",
		`{"__type":"UnrecognizedClientException"}`:                                     "403 UnrecognizedClientException",
		`something else`: "403 without a code",
	} {
		if _, ok, said := asked(t, nil, nil, 403, answer); ok || said != want {
			t.Errorf("%s: proved %v, said %q, want %q", answer, ok, said, want)
		}
	}
	if _, ok, _ := asked(t, nil, nil, 307, ""); ok {
		t.Error("a redirection proves a key")
	}
	nowhere := httpFunc(func(*http.Request) (*http.Response, error) { return nil, errors.New("no way") })
	cfg := aws.Config{Region: "eu-west-1", HTTPClient: nowhere}
	p := principal.NewProver(cfg, time.Now)
	if ok, _, err := p.Prove(t.Context(), principal.Key{}, nil, nil); ok || err == nil {
		t.Error("what cannot be reached proves a key")
	}
	if ok, _, err := p.Prove(t.Context(), principal.Key{}, &plan.Proof{Service: "s3", Path: "/${X}"}, nil); ok || err == nil {
		t.Error("a proof without its values proves a key")
	}
}
