package template

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/test/expect"
)

// The data is whole, in order, and says what a careful reader of AWS's pages knows.
func TestSchemas(t *testing.T) {
	all := kinds()
	if len(all) < 1800 || !slices.IsSorted(all) || !slices.Equal(slices.Compact(slices.Clone(all)), all) {
		t.Errorf("%d types, which are out of order or twice", len(all))
	}
	calls := 0
	for _, kind := range all {
		s, known := schemaOf(kind)
		if !known {
			t.Fatalf("%s is not found", kind)
		}
		if len(s.create) > 0 {
			calls++
		}
	}
	if calls < 1700 {
		t.Errorf("only of %d types it is known what CloudFormation calls", calls)
	}

	queue, _ := schemaOf("AWS::SQS::Queue")
	want := schema{
		fixed: [][]string{{"FifoQueue"}, {"QueueName"}}, names: map[string]bool{"QueueName": false},
		create: []string{"sqs:CreateQueue", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListQueueTags", "sqs:TagQueue"},
		read:   []string{"sqs:GetQueueAttributes", "sqs:ListQueueTags"},
		update: []string{"sqs:GetQueueAttributes", "sqs:ListQueueTags", "sqs:SetQueueAttributes", "sqs:TagQueue",
			"sqs:UntagQueue"},
		remove: []string{"sqs:DeleteQueue", "sqs:GetQueueAttributes"},
	}
	expect.Same(t, "the schema of a queue", want, queue, cmp.AllowUnexported(schema{}))

	for kind, want := range map[string]map[string]bool{
		"AWS::S3::Bucket":             {"BucketName": false, "BucketNamePrefix": false},
		"AWS::Events::EventBus":       {"Name": true},
		"AWS::KMS::Alias":             {"AliasName": true},
		"AWS::DynamoDB::Table":        {"TableName": false},
		"AWS::RDS::DBInstance":        {"DBInstanceIdentifier": false}, // not that of the cluster that it is in
		"AWS::S3::BucketPolicy":       {},
		"AWS::ApiGateway::Stage":      {}, // its name is one within an API
		"AWS::SecretsManager::Secret": {"Name": false},
	} {
		s, _ := schemaOf(kind)
		expect.Same(t, "names of "+kind, want, s.names)
	}
	if _, known := schemaOf("AWS::SQS::Quene"); known {
		t.Error("what is no type is known")
	}
}

// JSON Schema says which patterns all read alike.
func TestCommonPatterns(t *testing.T) {
	for pattern, want := range map[string]bool{
		"[a-z]+": true, "^[^a-z_.-]*$": true, "(a|b){2,3}c?": true, `a\.b\-c\[`: true, "[a-z]{2}": true, "": true, "é+": true,
		"(?i)a": false, "(?:a)": false, "(?=a)a": false, `\d+`: false, `[\w]`: false,
		"[a&&b]": false, "[[:alpha:]]": false, "a.b": false,
		`\p{L}`: false, "a++": false, "a{,3}": false, "a{1,2000}": false, "(a": false, "[a": false, `\\(?i)`: false, "a{": false,
	} {
		expect.Same(t, pattern, want, common(pattern))
	}
}

// Each description in the schema of settings says what is wrong, and behind a semicolon what to do; those of names only
// what to do, since what is wrong with them is always the same.
func TestDescriptionsOfSettings(t *testing.T) {
	var schema any
	expect.OK(t, json.Unmarshal(settingsText, &schema))
	said := 0
	walk(schema, "", func(at string, v any) {
		object, _ := v.(mapping)
		text, is := object["description"].(string)
		what, mend, both := strings.Cut(text, "; ")
		if is && (both == strings.HasSuffix(at, "/propertyNames") || both && (what == "" || mend == "")) {
			t.Errorf("%s: %q", at, text)
		}
		if is {
			said++
		}
	})
	if said < 40 {
		t.Errorf("%d descriptions", said)
	}
}
