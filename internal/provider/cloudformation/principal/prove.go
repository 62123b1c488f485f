package principal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// NewProver returns a Prover that makes calls in the config's region, at the config's endpoint if
// it has one. It does not use the config's credentials. now dates the signatures.
func NewProver(cfg aws.Config, now func() time.Time) Prover {
	if cfg.HTTPClient == nil { // the loader leaves it to the clients of services
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	return prover{cfg, now}
}

type prover struct {
	aws.Config
	now func() time.Time
}

const (
	// proofTimeout is generous for one small call, and ends the call before the step ends.
	proofTimeout = 5 * time.Second
	// proofRead is how many bytes of a response are read.
	proofRead = 64 << 10
)

// whose only asks whose the key is: AWS answers that for every key that it knows.
var whose = plan.Proof{
	Service: "sts", Body: "Action=GetCallerIdentity&Version=2011-06-15",
}

// These are the content types of bodies, unless headers give another one.
const (
	formType = "application/x-www-form-urlencoded; charset=utf-8"
	jsonType = "application/x-amz-json-1.0"
)

// Prove implements Prover with one request, signed with the key.
func (p prover) Prove(ctx context.Context, key Key, proof *plan.Proof, values map[string]string) (ok bool, said string,
	err error) {
	if proof == nil {
		proof = &whose
	}
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	request, body, err := p.request(ctx, proof, values)
	if err != nil {
		return false, "", err
	}
	digest := plan.Digest(body)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = proof.Service == "s3" })
	if proof.Service == "s3" {
		request.Header.Set("X-Amz-Content-Sha256", digest)
	}
	credentials := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret}
	if err := signer.SignHTTP(ctx, credentials, request, digest, proof.Service, p.Region, p.now()); err != nil {
		return false, "", fmt.Errorf("signing a proof: %w", err)
	}
	response, err := p.HTTPClient.Do(request)
	if err != nil {
		return false, "", fmt.Errorf("calling %s: %w", proof.Service, err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, proofRead))
	if err = cmp.Or(err, response.Body.Close()); err != nil {
		return false, "", fmt.Errorf("reading the answer of %s: %w", proof.Service, err)
	}
	if response.StatusCode/100 == 2 {
		return true, "", nil
	}
	return false, fmt.Sprintf("%d %s", response.StatusCode, code(text)), nil
}

// request returns the proof's request, not yet signed, and its body.
func (p prover) request(ctx context.Context, proof *plan.Proof, values map[string]string) (*http.Request, []byte, error) {
	path, query, _ := strings.Cut(cmp.Or(proof.Path, "/"), "?")
	body := proof.Body
	forBody, contentType := url.QueryEscape, formType
	if strings.HasPrefix(strings.TrimSpace(body), "{") {
		forBody, contentType = inJSON, jsonType
	}
	for text, escape := range map[*string]func(string) string{&path: url.PathEscape, &query: url.QueryEscape, &body: forBody} {
		filled, err := plan.Fill(*text, escaped(values, escape))
		if err != nil {
			return nil, nil, fmt.Errorf("filling a proof: %w", err)
		}
		*text = filled
	}
	address := cmp.Or(aws.ToString(p.BaseEndpoint), fmt.Sprintf("https://%s.%s.%s", proof.Service, p.Region,
		cmp.Or(values[plan.ValueSuffix], "amazonaws.com")))
	address = strings.TrimSuffix(address, "/") + path
	if query != "" {
		address += "?" + query
	}
	request, err := http.NewRequestWithContext(ctx, cmp.Or(proof.Method, http.MethodPost), address, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, nil, fmt.Errorf("making a proof: %w", err)
	}
	if body != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for name, text := range proof.Headers {
		filled, err := plan.Fill(text, values)
		if err != nil {
			return nil, nil, fmt.Errorf("filling a proof: %w", err)
		}
		request.Header.Set(name, filled)
	}
	return request, []byte(body), nil
}

func escaped(values map[string]string, escape func(string) string) map[string]string {
	out := make(map[string]string, len(values))
	for name, value := range values {
		out[name] = escape(value)
	}
	return out
}

// inJSON escapes a text for use between the quotes of a JSON string.
func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // a text always encodes
	return string(quoted[1 : len(quoted)-1])
}

// code returns the code of an error in XML or JSON. Its pattern is compiled only when a proof has
// failed: it is by far the largest one, and each start would pay for it.
func code(body []byte) string {
	found := regexp.MustCompile(
		`<Code>(\w{1,80})</Code>|"(?:__type|code|Code)"\s*:\s*"(?:[\w.]*#)?(\w{1,80})`).FindSubmatch(body)
	if found == nil {
		return "without a code"
	}
	return string(bytes.Join(found[1:], nil))
}
