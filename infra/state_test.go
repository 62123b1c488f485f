package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/expect"
)

// A listener answers DynamoDB's calls as if all were well, and keeps what it was asked.
type listener struct{ asked map[string]map[string]any }

func (l *listener) Do(r *http.Request) (*http.Response, error) {
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	l.asked[call] = body
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewBufferString(`{"Table":{"TableStatus":"ACTIVE"}}`)), Request: r,
	}, nil
}

// tested is the table that the store's own tests run on, as CloudFormation would describe it.
func tested(t *testing.T) map[string]any {
	t.Helper()
	heard := &listener{asked: map[string]map[string]any{}}
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1", HTTPClient: heard, Credentials: aws.AnonymousCredentials{}})
	expect.OK(t, dynamotest.CreateTable(t.Context(), client, "table"), "creating the table")
	table := heard.asked["CreateTable"]
	delete(table, "TableName")
	table["TimeToLiveSpecification"] = heard.asked["UpdateTimeToLive"]["TimeToLiveSpecification"]
	return table
}

// byName puts attributes in order: they are a set.
func byName(attributes any) any {
	list, _ := attributes.([]any)
	slices.SortFunc(list, func(a, b any) int {
		return strings.Compare(plain(at(a, "AttributeName")), plain(at(b, "AttributeName")))
	})
	return list
}

// The deployed table is the one that the store was tested on, and beyond that only safer.
func TestTheTableIsTheStores(t *testing.T) {
	deployed, want := must(t, usual).one(t, "AWS::DynamoDB::Table", "State"), tested(t)
	got := maps.Clone(deployed)
	for _, name := range []string{"DeletionProtectionEnabled", "PointInTimeRecoverySpecification", "SSESpecification"} {
		delete(got, name) // of what follows
	}
	for _, table := range []map[string]any{want, got} {
		table["AttributeDefinitions"] = byName(table["AttributeDefinitions"])
	}
	expect.Same(t, "the table", want, got)
	// The store's constants name the projection and the attribute of the time to live.
	expect.Same(t, "the index holds, and records expire by", []any{"KEYS_ONLY", dynamo.AttributeExpires},
		[]any{at(list(deployed["GlobalSecondaryIndexes"])[0], "Projection", "ProjectionType"),
			at(deployed, "TimeToLiveSpecification", "AttributeName")})
}

// A table that was restored is to be as safe as the one that was lost, and AWS restores none of this.
func TestTheGuideSwitchesOnWhatAWSDoesNotRestore(t *testing.T) {
	guide := string(expect.Get(os.ReadFile("../docs/recover.md"))(t))
	table := must(t, usual).one(t, "AWS::DynamoDB::Table", "State")
	for property, option := range map[string]string{
		"DeletionProtectionEnabled":        "--deletion-protection-enabled",
		"PointInTimeRecoverySpecification": "PointInTimeRecoveryEnabled=true",
		"TimeToLiveSpecification":          "Enabled=true,AttributeName=" + dynamo.AttributeExpires,
	} {
		if table[property] == nil {
			t.Errorf("the table has no %s", property)
		}
		expect.Says(t, "docs/recover.md", guide, option)
	}
}

// A platform goes on asking for what was made with a broker that was taken away, and what is replaced is not to be lost. Logs
// are, and what a new stack makes anew.
func TestOnlyStateOutlivesTheStack(t *testing.T) {
	for name, variant := range variants {
		made := must(t, variant)
		kept := []string{made.id(t, "AWS::DynamoDB::Table", ""), made.id(t, "AWS::KMS::Key", ""),
			made.id(t, "AWS::SecretsManager::Secret", "")}
		for id, r := range made.Resources {
			want := "Retain"
			if !slices.Contains(kept, id) {
				want = "Delete" // which it is unless it is set
			}
			expect.Same(t, name+": deletion and replacement of "+id, []string{want, want},
				[]string{cmp.Or(r.DeletionPolicy, "Delete"), cmp.Or(r.UpdateReplacePolicy, "Delete")})
		}
	}
}

// Who may use the key is said by roles alone, and Secrets Manager has no more than the account that it works for.
func TestTheKeyTrustsTheAccountOnly(t *testing.T) {
	key := must(t, usual).one(t, "AWS::KMS::Key", "")
	for _, s := range at(key, "KeyPolicy", "Statement").([]any) {
		if who := plain(at(s, "Principal", "AWS")); at(s, "Effect") != "Allow" ||
			who != "arn:<AWS::Partition>:iam::<AWS::AccountId>:root" {
			t.Errorf("the key's policy has a statement for %s: %s", who, plain(s))
		}
	}
}

// A stack goes on with the state that another one left: it uses that as its own, and never
// owns it, so that its removal removes none of it.
func TestFoundStateIsUsedAndNotOwned(t *testing.T) {
	const table, key = "Longshore-StateTable962DE04C-ABC", "arn:aws:kms:eu-central-1:111122223333:key/1234"
	const secret = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:SecretsPlatform1234-Ab/1+=.@_-AbC123"
	const identity = "6b3f3b60-0c8a-11f0-9d1e-0a5f6d3c2b1a"
	made, err := synthesized(map[string]any{ContextTable: table, ContextKey: key, ContextSecret: secret, ContextBroker: identity})
	expect.OK(t, err)
	for _, kind := range []string{"AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::SecretsManager::Secret"} {
		expect.Same(t, "what the stack makes", nil, made.of(kind))
	}
	for name, f := range functions(t, made) {
		told := variables(f)
		expect.Same(t, fmt.Sprintf("function %q has table", name), table, told[app.EnvTable])
		expect.Same(t, fmt.Sprintf("function %q is of the broker", name), identity, told[app.EnvBroker])
		if name != FunctionReaper {
			expect.Same(t, fmt.Sprintf("function %q has key", name), key, told[app.EnvKey])
		}
		if name == FunctionAPI {
			expect.Same(t, "the API has the secret", secret, told[app.EnvSecret])
		}
	}
	for role, opens := range map[string]bool{"ApiFunction": true, "ProvisionerFunction": false, "ReaperFunction": false} {
		var secrets, state bool
		for _, g := range grantsOf(t, made, role) {
			secrets = secrets || g.action == "secretsmanager:GetSecretValue" && strings.Contains(g.String(), secret)
			state = state || strings.HasSuffix(g.String(), ":table/"+table) || strings.Contains(g.String(), key)
		}
		expect.Same(t, role+" may read the secret", opens, secrets)
		expect.Same(t, role+" may use the table or the key", true, state)
	}
	for name, want := range map[string]string{outputs.Table: table, outputs.Key: key, outputs.Secret: secret,
		outputs.Broker: identity} {
		expect.Same(t, fmt.Sprintf("the output %s is", name), want, plain(made.Outputs[name].Value))
	}
}
