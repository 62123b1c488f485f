// Package servicestest uses the AWS services that ship as applications do: by the credentials of a binding alone.
// The tests of a broker, which may run anywhere, ask it for bindings; the rows of Services tell whether the
// bindings open what they should and nothing else, and Listing whether all was removed.
package servicestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A Service is an offering, and how applications use what it makes.
type Service struct {
	// Offering is its name.
	Offering string
	// Credentials are the members of a binding beside those of a plan's Key, and no
	// others.
	Credentials []string
	// Plans are all that it has, in order. The first is ordered without parameters.
	Plans []Plan
	// See reads the parameters of an instance in the account, by their names, as
	// somebody who may do all.
	See func(ctx context.Context, c aws.Config, credentials map[string]string) (map[string]any, error)
	// Moves is set where an instance of the first plan may get the second one.
	Moves bool
	// OnlyTLS is set where AWS would take calls without TLS, and a policy refuses them.
	OnlyTLS bool
	// Unproved is what no test shows of the service.
	Unproved string
}

// A Plan is one of a service, and how it is tried.
type Plan struct {
	Name string
	// Use writes something and reads it back. It is nil or why that failed.
	Use func(ctx context.Context, c aws.Config, credentials map[string]string) error
	// Shows says what Use does, for people.
	Shows string
	// Forbidden is a call that applications may not make, with what Use made; nil for
	// none. Forbids says what it is, for people.
	Forbidden func(ctx context.Context, c aws.Config, credentials map[string]string) error
	Forbids   string
	// Given are the parameters that an instance is ordered with, in JSON: all that
	// there are.
	Given string
	// Changed are the parameters of an update, in JSON: all that an update takes.
	Changed string
	// Unseen are the parameters that MiniStack takes and does not show; Unchanged those
	// that it takes and shows, and leaves as they are in updates.
	Unseen, Unchanged []string
	// OnDelete is what becomes of what an instance holds.
	OnDelete plan.Rule
	// Role is set where a binding is a role, which Trusted may assume.
	Role bool
}

// Deployed is the plan that the tests of the deployed broker try.
func (s Service) Deployed() Plan { return s.Plans[0] }

// Trusted is the account whose principals may assume roles of bindings.
const Trusted = "111122223333"

// Services are those that ship, a row for each.
func Services() []Service {
	described, again := `{"description":"for invoices"}`, `{"description":"for letters"}`
	return []Service{
		{Offering: "dynamodb", Credentials: []string{"table_arn", "table_name"}, See: seeTable, OnlyTLS: true, Moves: true,
			Plans: []Plan{
				{Name: "on-demand", Use: useTable, Shows: "an item is written and read", Given: sortedTable, Changed: expiring,
					Unseen: []string{"ttl_attribute"}, OnDelete: plan.Empty},
				{Name: "protected", Use: useTable, Shows: "an item is written and read", Given: sortedTable, Changed: expiring,
					Unseen: []string{"ttl_attribute"}, OnDelete: plan.Retain},
			}, Unproved: "encryption at rest, point-in-time recovery, expiry, limits of throughput"},
		{Offering: "eventbridge", Credentials: []string{"event_bus_name"}, See: seeBus, Moves: true, Plans: []Plan{
			{Name: "standard", Use: useRules, Shows: "a rule is made, an event is sent, the rule is removed",
				Given: described, Changed: again, OnDelete: plan.Empty},
			{Name: "publisher", Use: useBus, Shows: "an event is sent", Forbidden: putRule, Forbids: "to make a rule",
				Given: described, Changed: again, OnDelete: plan.Empty},
		}, Unproved: "encryption at rest, other accounts kept out, a bus with rules not deleted, " +
			"targets of other spaces refused"},
		{Offering: "kinesis", Credentials: []string{"stream_name"}, See: seeStream, Moves: true, Plans: []Plan{
			{Name: "on-demand", Use: useStream, Shows: "a record is put and got", Given: `{"retention_hours":72}`,
				Changed: `{"retention_hours":48}`, OnDelete: plan.Empty},
			{Name: "provisioned", Use: useStream, Shows: "a record is put and got", Given: `{"retention_hours":72,"shards":3}`,
				Changed: `{"retention_hours":48,"shards":2}`, Unchanged: []string{"shards"}, OnDelete: plan.Empty},
		}, Unproved: "encryption at rest, growing by itself, consumers"},
		{Offering: "kms", Credentials: []string{"key_arn"}, See: seeKey, Plans: []Plan{
			{Name: "encryption", Use: useKey, Shows: "a text is encrypted and decrypted", Forbidden: disableKey,
				Forbids: "to disable the key", Given: `{"description":"for invoices","rotation_days":180}`,
				Changed: `{"description":"for letters","rotation_days":90}`, Unseen: []string{"rotation_days"},
				OnDelete: plan.Empty},
			{Name: "signing", Use: useSignature, Shows: "a text is signed, and the signature verified", Forbidden: disableKey,
				Forbids: "to disable the key", Given: described, Changed: again, OnDelete: plan.Empty},
		}, Unproved: "rotation, how long a deleted key can be had back"},
		{Offering: "s3", Credentials: []string{"bucket", "endpoint", "uri"}, See: seeBucket, OnlyTLS: true, Moves: true,
			Plans: []Plan{
				{Name: "standard", Use: useBucket, Shows: "an object is put, got and listed",
					Given:    `{"versioning":"Enabled","expire_days":10,"noncurrent_days":20}`,
					Changed:  `{"versioning":"Enabled","expire_days":11,"noncurrent_days":21}`,
					Unseen:   []string{"expire_days", "noncurrent_days"},
					OnDelete: plan.Empty},
				{Name: "protected", Use: useBucket, Shows: "an object is put, got and listed", Forbidden: deleteVersion,
					Forbids: "to remove a version", Given: `{"noncurrent_days":20}`, Changed: `{"noncurrent_days":21}`,
					Unseen: []string{"noncurrent_days"}, OnDelete: plan.Retain},
			}, Unproved: "encryption at rest, lifecycle rules, blocked public access, that a bucket has to be emptied first"},
		{Offering: "secretsmanager", Credentials: []string{"secret_arn"}, See: seeSecret, Moves: true, Plans: []Plan{
			{Name: "standard", Use: useSecret, Shows: "a value is put and got", Given: described, Changed: again,
				OnDelete: plan.Empty},
			{Name: "retained", Use: useSecret, Shows: "a value is put and got", Given: described, Changed: again,
				OnDelete: plan.Retain},
		}, Unproved: "encryption at rest, how long a deleted secret can be had back"},
		{Offering: "sns", Credentials: []string{"topic_arn"}, See: seeTopic, OnlyTLS: true, Plans: []Plan{
			{Name: "standard", Use: useTopic, Shows: "a message is published", Given: `{"display_name":"Invoices"}`,
				Changed: `{"display_name":"Letters"}`, OnDelete: plan.Empty},
			{Name: "fifo", Use: useTopic, Shows: "a message is published",
				Given:    `{"display_name":"Invoices","content_based_deduplication":true}`,
				Changed:  `{"display_name":"Letters","content_based_deduplication":true}`,
				Unseen:   []string{"content_based_deduplication"},
				OnDelete: plan.Empty},
		}, Unproved: "encryption at rest, subscribing, the order of a FIFO topic"},
		{Offering: "sqs", Credentials: []string{"dead_letter_queue_arn", "dead_letter_queue_url", "queue_arn", "queue_url"},
			See: seeQueue, OnlyTLS: true, Plans: []Plan{
				{Name: "standard", Use: useQueue, Shows: "a message is sent, received and deleted; dead letters are looked for",
					Given:    `{"visibility_timeout":45,"retention_seconds":3600,"delay_seconds":1,"max_receives":3}`,
					Changed:  `{"visibility_timeout":60,"retention_seconds":7200,"delay_seconds":1,"max_receives":4}`,
					OnDelete: plan.Empty},
				{Name: "fifo", Use: useQueue, Shows: "a message is sent, received and deleted; dead letters are looked for",
					Given: `{"visibility_timeout":0,"retention_seconds":3600,"delay_seconds":1,"max_receives":1,
					"content_based_deduplication":true}`,
					Changed: `{"visibility_timeout":60,"retention_seconds":7200,"delay_seconds":1,"max_receives":4,
					"content_based_deduplication":true}`,
					OnDelete: plan.Refuse},
			}, Unproved: "encryption at rest, scaling, the expiry of messages, the order of a FIFO queue"},
	}
}

// Config is what an application makes of its credentials: AWS is at an endpoint. A role
// is assumed by somebody of the account Trusted.
func Config(endpoint string, got map[string]string) aws.Config {
	c := aws.Config{
		Region: got["region"], BaseEndpoint: &endpoint, HTTPClient: client{}, RetryMaxAttempts: 2,
		Credentials: credentials.NewStaticCredentialsProvider(got["access_key_id"], got["secret_access_key"], ""),
	}
	if got["role_arn"] != "" {
		c.Credentials = credentials.NewStaticCredentialsProvider(Trusted, Trusted, "")
		c = Assumed(c, got)
	}
	return c
}

// Assumed is the config of somebody who has assumed a binding's role, once.
func Assumed(by aws.Config, got map[string]string) aws.Config {
	c := by.Copy()
	c.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(by), got["role_arn"],
		func(o *stscreds.AssumeRoleOptions) {
			if id := got["external_id"]; id != "" {
				o.ExternalID = &id
			}
		}))
	return c
}

// A client sends bodies from memory: a server on the same machine may answer before
// the SDK has written all, and the connection breaks.
type client struct{}

func (client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Key names the members that open what a binding is for: with those of another
// binding, it is the other's key.
func (p Plan) Key() []string {
	if p.Role {
		return []string{"role_arn", "external_id", "region"}
	}
	return []string{"access_key_id", "secret_access_key", "region"}
}

// Complete reports what the credentials of a binding of a plan lack, or have beside
// those of the service.
func (s Service) Complete(p Plan, got map[string]string) error {
	want := slices.Sorted(slices.Values(slices.Concat(s.Credentials, p.Key())))
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		return fmt.Errorf("the credentials are %v, want %v", names, want)
	}
	for name, value := range got {
		if value == "" {
			return fmt.Errorf("the credential %q is empty", name)
		}
	}
	return nil
}

// With are the credentials of one binding with the key of another.
func (p Plan) With(credentials, key map[string]string) map[string]string {
	out := maps.Clone(credentials)
	for _, name := range p.Key() {
		out[name] = key[name]
	}
	return out
}

// Refused reports whether AWS has refused a call for want of rights, or for a key that
// it does not know.
func Refused(err error) bool {
	codes := []string{
		"AccessDenied", "AccessDeniedException", "AuthorizationError", "NotAuthorizedException", "KMSAccessDeniedException",
		"InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId", "InvalidAccessKeyIdException",
		"InvalidSecurity",
	}
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(codes, e.ErrorCode())
}
