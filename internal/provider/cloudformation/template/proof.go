package template

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// services lists the services whose actions begin with another word than their signatures contain.
var services = map[string]string{"monitoring": "cloudwatch", "email": "ses", "tagging": "tag"}

// otherActions lists the calls that need another action than the one with their name.
var otherActions = map[string]string{
	"sqs:SendMessageBatch": "sqs:SendMessage", "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
	"sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility", "sns:PublishBatch": "sns:Publish",
	"sts:GetCallerIdentity": "", // no policy can deny it
	// The action that these calls need depends on their content.
	"dynamodb:ExecuteStatement": "", "dynamodb:BatchExecuteStatement": "", "dynamodb:ExecuteTransaction": "",
	"dynamodb:TransactGetItems": "", "dynamodb:TransactWriteItems": "", "kms:ReEncrypt": "",
}

var formAction = regexp.MustCompile(`(?:^|[?&])Action=(\w+)`)

// actionOf returns the action that a proof's call needs; empty if its texts do not determine it.
func actionOf(p plan.Proof) string {
	operation := ""
	for name, text := range p.Headers {
		if strings.EqualFold(name, "X-Amz-Target") {
			operation = text[strings.LastIndexByte(text, '.')+1:]
		}
	}
	for _, text := range []string{p.Body, p.Path} {
		if found := formAction.FindStringSubmatch(text); found != nil && operation == "" {
			operation = found[1]
		}
	}
	switch {
	case p.Service == "s3":
		return objectAction(p)
	case operation == "":
		return ""
	}
	action := cmp.Or(services[p.Service], p.Service) + ":" + operation
	if other, is := otherActions[action]; is {
		return other
	}
	return action
}

// objectAction returns the action of a call of S3. It depends on the method, on the query, and on
// whether the path goes on after the bucket.
func objectAction(p plan.Proof) string {
	path, query, _ := strings.Cut(p.Path, "?")
	bucket, key, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	first, _, _ := strings.Cut(query, "&")
	first, _, _ = strings.Cut(first, "=")
	if p.Method == http.MethodHead {
		p.Method = http.MethodGet
	}
	switch {
	case bucket == "" || key != "" && query != "":
	case key != "":
		return ofObjects[p.Method]
	case p.Method == http.MethodGet:
		return ofBuckets[first]
	}
	return ""
}

// A call on an object needs an action by its method; a call that reads a bucket, one by the first name
// in its query.
var (
	ofObjects = map[string]string{"GET": "s3:GetObject", "PUT": "s3:PutObject", "DELETE": "s3:DeleteObject"}
	ofBuckets = map[string]string{
		"": "s3:ListBucket", "list-type": "s3:ListBucket", "prefix": "s3:ListBucket", "max-keys": "s3:ListBucket",
		"location": "s3:GetBucketLocation", "versioning": "s3:GetBucketVersioning", "versions": "s3:ListBucketVersions",
		"uploads": "s3:ListBucketMultipartUploads", "tagging": "s3:GetBucketTagging",
	}
)

// proves refuses a proof that the plan's policy does not allow: each bind would wait for a key
// whose proof never succeeds, and then fail.
func (c *checker) proves(all []statement) {
	if c.Proof == nil {
		return
	}
	action := actionOf(*c.Proof)
	denied := slices.ContainsFunc(all, func(s statement) bool {
		everywhere := s.condition == nil && slices.ContainsFunc(s.resources, isEverything)
		return !s.allows && everywhere && s.covers(action)
	})
	if action != "" && (denied || !allowed(all, action)) {
		c.about("proof", "is a call that the plan's policy does not allow, "+action+": no binding could be made",
			"allow it in the policy, or make a call that is allowed")
	}
}
