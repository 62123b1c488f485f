package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

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
	got := map[string]any{}
	for name, value := range deployed {
		switch name {
		case "DeletionProtectionEnabled", "PointInTimeRecoverySpecification", "SSESpecification": // of what follows
		default:
			got[name] = value
		}
	}
	for _, table := range []map[string]any{want, got} {
		table["AttributeDefinitions"] = byName(table["AttributeDefinitions"])
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("table: -tested +deployed:\n%s", d)
	}
	// The store's constants name the projection and the attribute of the time to live.
	index := at(deployed["GlobalSecondaryIndexes"].([]any)[0], "Projection", "ProjectionType")
	if expires := at(deployed, "TimeToLiveSpecification", "AttributeName"); index != "KEYS_ONLY" ||
		expires != dynamo.AttributeExpires {
		t.Errorf("the index holds %v and records expire by %v", index, expires)
	}
}

func TestWhatIsKeptIsSafe(t *testing.T) {
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			made := must(t, variant)
			table, key := made.one(t, "AWS::DynamoDB::Table", ""), made.one(t, "AWS::KMS::Key", "")
			tests := map[string]struct {
				reason    string
				got, want any
			}{
				"Protection": {"nobody deletes the table by mistake", table["DeletionProtectionEnabled"], true},
				"Recovery": {"a mistake in it can be undone",
					at(table, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"), true},
				"Encryption": {
					"it cannot be read without the key", plain(table["SSESpecification"]),
					`{"KMSMasterKeyId":{"Fn::GetAtt":["` + made.id(t, "AWS::KMS::Key", "") +
						`","Arn"]},"SSEEnabled":true,"SSEType":"KMS"}`,
				},
				"Rotation": {"the key does not serve for ever", key["EnableKeyRotation"], true},
				"Rotated": {"nor longer than is chosen", key["RotationPeriodInDays"],
					map[string]any{"Usual": 365.0, "Chosen": 2560.0}[name]},
				"Window": {"a key that goes can be kept for as long as AWS allows", key["PendingWindowInDays"], nil},
				"Name":   {"a table that is kept is in nobody's way", table["TableName"], nil},
				"Secret": {"nor is a secret", made.one(t, "AWS::SecretsManager::Secret", "")["Name"], nil},
			}
			for name, test := range tests {
				expect.Same(t, fmt.Sprintf("%s: %s", name, test.reason), test.want, test.got)
			}
		})
	}
}

// A platform goes on asking for what was made with a broker that was taken
// away, and what is replaced is not to be lost. Logs are, and what a new stack
// makes anew.
func TestOnlyStateOutlivesTheStack(t *testing.T) {
	made := must(t, usual)
	kept := []string{made.id(t, "AWS::DynamoDB::Table", ""), made.id(t, "AWS::KMS::Key", ""),
		made.id(t, "AWS::SecretsManager::Secret", "")}
	for id, r := range made.Resources {
		want := "Retain"
		if !slices.Contains(kept, id) {
			want = "Delete"
		}
		for _, policy := range []string{r.DeletionPolicy, r.UpdateReplacePolicy} {
			if policy == "" {
				policy = "Delete" // what it is unless it is set
			}
			if policy != want {
				t.Errorf("resource %q: deletion policy %q, replacement policy %q, want %q", id, r.DeletionPolicy,
					r.UpdateReplacePolicy, want)
			}
		}
	}
}

// Who may use the key is said by roles alone, and Secrets Manager has no more
// than the account that it works for.
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
		if ids := made.of(kind); len(ids) != 0 {
			t.Errorf("the stack makes %q", ids)
		}
	}
	for name, f := range functions(t, made) {
		variables := asMap(at(f, "Environment", "Variables"))
		expect.Same(t, fmt.Sprintf("function %q has table", name), table, plain(variables[app.EnvTable]))
		expect.Same(t, fmt.Sprintf("function %q is of the broker", name), identity, plain(variables[app.EnvBroker]))
		if got := plain(variables[app.EnvKey]); got != key && name != FunctionReaper {
			t.Errorf("function %q has key %q", name, got)
		}
	}
	if got := plain(at(functions(t, made)[FunctionAPI], "Environment", "Variables", app.EnvSecret)); got != secret {
		t.Errorf("the API has the secret %q", got)
	}
	if !slices.ContainsFunc(grantsOf(t, made, "ApiFunction"), func(g grant) bool {
		return strings.Contains(g.String(), "secretsmanager:GetSecretValue") && strings.Contains(g.String(), secret)
	}) {
		t.Error("the API may not read the secret")
	}
	roles := map[string]int{}
	for _, role := range []string{"ApiFunction", "ProvisionerFunction", "ReaperFunction"} {
		for _, g := range grantsOf(t, made, role) {
			if strings.HasSuffix(g.String(), ":table/"+table) || strings.Contains(g.String(), key) {
				roles[role]++
			}
		}
	}
	for _, role := range []string{"ApiFunction", "ProvisionerFunction", "ReaperFunction"} {
		if roles[role] == 0 {
			t.Errorf("%s may use neither the table nor the key", role)
		}
	}
	for name, want := range map[string]string{outputs.Table: table, outputs.Key: key, outputs.Secret: secret,
		outputs.Broker: identity} {
		expect.Same(t, fmt.Sprintf("the output %s is", name), want, plain(made.Outputs[name].Value))
	}
}
