// Package servicestest uses the AWS services that ship as their applications do: by
// nothing but the credentials of a binding. The broker that handed them out may run
// anywhere; whoever tests one asks it for bindings, and has the rows of Services tell
// whether they open what they should, and nothing else. That all is removed is told by
// Listing.
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
	"github.com/aws/smithy-go"
)

// A Service is an offering, and how applications use what it makes.
type Service struct {
	// Offering and Plan name what is ordered, without parameters: the first plan.
	Offering, Plan string
	// Credentials are the members of a binding beside those of Key, and no others.
	Credentials []string
	// Use writes something and reads it back. It is nil or why that failed.
	Use func(ctx context.Context, c aws.Config, credentials map[string]string) error
	// Shows says what Use does, for people.
	Shows string
	// OnlyTLS is set where AWS would take calls without TLS, and a policy refuses them.
	OnlyTLS bool
	// Change is an update of its instances, or nil where none is tried.
	Change *Change
	// Retained is the plan whose instances outlive their deletion, tried by Use, or empty.
	Retained string
	// Refusing is the plan whose instances are not deleted while they hold something,
	// tried by DeadLetter, or empty.
	Refusing string
	// Unproved is what no emulator shows of the service.
	Unproved string
}

// Key are the members that the credentials of every service have.
var Key = []string{"access_key_id", "region", "secret_access_key"}

// Services are those that ship, a row for each.
func Services() []Service {
	return []Service{
		{Offering: "dynamodb", Plan: "on-demand", Credentials: []string{"table_arn", "table_name"}, Use: useTable, OnlyTLS: true,
			Retained: "protected",
			Shows:    "an item is written and read", Unproved: "point-in-time recovery, the expiry of items, limits of throughput"},
		{Offering: "eventbridge", Plan: "standard", Credentials: []string{"event_bus_name"}, Use: useBus,
			Shows: "a rule is made, an event is sent, the rule is removed", Unproved: "that a bus with rules is not deleted; what targets are sent"},
		{Offering: "kinesis", Plan: "on-demand", Credentials: []string{"stream_name"}, Use: useStream, Change: changedStream,
			Shows: "a record is put and got", Unproved: "encryption at rest, growing by itself, consumers"},
		{Offering: "kms", Plan: "encryption", Credentials: []string{"key_arn"}, Use: useKey,
			Shows: "a text is encrypted and decrypted", Unproved: "rotation, and the days after which a deleted key is gone"},
		{Offering: "s3", Plan: "standard", Credentials: []string{"bucket", "endpoint", "uri"}, Use: useBucket, OnlyTLS: true,
			Change: changedBucket, Retained: "protected",
			Shows: "an object is put, got and listed", Unproved: "encryption at rest, lifecycle rules, that public access is blocked"},
		{Offering: "secretsmanager", Plan: "standard", Credentials: []string{"secret_arn"}, Use: useSecret, Retained: "retained",
			Shows: "a value is put and got", Unproved: "encryption at rest"},
		{Offering: "sns", Plan: "standard", Credentials: []string{"topic_arn"}, Use: useTopic, OnlyTLS: true,
			Shows: "a message is published", Unproved: "encryption at rest, delivery by mail or SMS"},
		{Offering: "sqs", Plan: "standard", Credentials: []string{"queue_arn", "queue_url"}, Use: useQueue, OnlyTLS: true,
			Change: changedQueue, Refusing: "fifo",
			Shows: "a message is sent, received and deleted", Unproved: "encryption at rest, how queues scale"},
	}
}

// Config is what an application makes of its credentials: AWS is at an endpoint.
func Config(endpoint string, got map[string]string) aws.Config {
	return aws.Config{
		Region: got["region"], BaseEndpoint: &endpoint, HTTPClient: client{}, RetryMaxAttempts: 2,
		Credentials: credentials.NewStaticCredentialsProvider(got["access_key_id"], got["secret_access_key"], ""),
	}
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

// Complete reports what a binding's credentials lack, or have beside those of the
// service.
func (s Service) Complete(got map[string]string) error {
	want := slices.Sorted(slices.Values(slices.Concat(s.Credentials, Key)))
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
func With(credentials, key map[string]string) map[string]string {
	out := maps.Clone(credentials)
	for _, name := range Key {
		out[name] = key[name]
	}
	return out
}

// Refused reports whether AWS has refused a call for want of rights, or for a key that
// it does not know.
func Refused(err error) bool {
	codes := []string{
		"AccessDenied", "AccessDeniedException", "AuthorizationError", "NotAuthorizedException", "KMSAccessDeniedException",
		"InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId", "InvalidAccessKeyIdException", "InvalidSecurity",
	}
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(codes, e.ErrorCode())
}
