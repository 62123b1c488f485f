package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

// value is what a template says at a place, in the words of plain: the type of a resource without AWS::, after a slash the
// beginning of its id where there are several, and after a space the way down, of names and indexes with dots between them.
// A value that is absent is the empty text.
func (t template) value(tb testing.TB, place string) string {
	tb.Helper()
	resource, way, _ := strings.Cut(place, " ")
	kind, prefix, _ := strings.Cut(resource, "/")
	ids := slices.DeleteFunc(t.of("AWS::"+kind), func(id string) bool { return !strings.HasPrefix(id, prefix) })
	if len(ids) == 0 {
		return ""
	}
	value := any(t.one(tb, "AWS::"+kind, prefix))
	for name := range strings.SplitSeq(way, ".") {
		if n, err := strconv.Atoi(name); err != nil {
			value = at(value, name)
		} else if all := list(value); n < len(all) {
			value = all[n]
		} else {
			return ""
		}
	}
	return plain(value)
}

// says requires that both variants say this at these places: the one as it is by itself, the other as was chosen.
func says(t *testing.T, places func(or func(usual, chosen string) string) map[string]string) {
	t.Helper()
	for name, variant := range variants {
		made := must(t, variant)
		or := func(usual, chosen string) string { return map[string]string{"Usual": usual, "Chosen": chosen}[name] }
		for place, want := range places(or) {
			expect.Same(t, name+": "+place, want, made.value(t, place))
		}
	}
}

func TestWhatTemplatesSay(t *testing.T) {
	says(t, func(or func(usual, chosen string) string) map[string]string {
		return map[string]string{
			"ApiGateway::RestApi EndpointConfiguration.Types": "REGIONAL", "ApiGateway::RestApi Name": or("Longshore", "Other"),
			// Types of bodies could change what is the function's to decide.
			"ApiGateway::RestApi BinaryMediaTypes": "", "ApiGateway::RestApi MinimumCompressionSize": "",
			"ApiGateway::RestApi Body": "", "ApiGateway::RestApi ApiKeySourceType": "",
			// Requests and answers hold passwords and credentials, of which nothing is logged, traced or kept. The usual rate is
			// far above a platform's usual load. A trace shows how long what took, and nothing of what was said.
			"ApiGateway::Stage MethodSettings": `{"DataTraceEnabled":false,"HttpMethod":"*","LoggingLevel":"OFF",` +
				`"MetricsEnabled":false,"ResourcePath":"/*","ThrottlingBurstLimit":` + or("100", "9") +
				`,"ThrottlingRateLimit":` + or("50", "5") + `}`,
			"ApiGateway::Stage TracingEnabled": or("false", "true"), "ApiGateway::Stage AccessLogSetting": "",
			"ApiGateway::Stage CacheClusterEnabled": "",
			// The ACL that is built counts each login by itself, and answers as the broker does.
			"WAFv2::WebACL Rules.0.Statement.RateBasedStatement.Limit":                    or("", "240"),
			"WAFv2::WebACL Rules.0.Statement.RateBasedStatement.EvaluationWindowSec":      or("", "60"),
			"WAFv2::WebACL Rules.0.Statement.RateBasedStatement.AggregateKeyType":         or("", "CUSTOM_KEYS"),
			"WAFv2::WebACL Rules.0.Statement.RateBasedStatement.CustomKeys.0.Header.Name": or("", "authorization"),
			"WAFv2::WebACL Rules.0.Action.Block.CustomResponse.ResponseCode":              or("", "429"),
			"WAFv2::WebACL Rules.1": "", "WAFv2::WebACL DefaultAction": or("", `{"Allow":{}}`),
			// A sample would show a login.
			"WAFv2::WebACL VisibilityConfig.SampledRequestsEnabled":         or("", "false"),
			"WAFv2::WebACL Rules.0.VisibilityConfig.SampledRequestsEnabled": or("", "false"),
			// The table is not deleted by mistake, a mistake in it can be undone, and it cannot be read without the key.
			"DynamoDB::Table DeletionProtectionEnabled":                                   "true",
			"DynamoDB::Table PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": "true",
			"DynamoDB::Table SSESpecification.KMSMasterKeyId":                             "<StateKey.Arn>",
			"DynamoDB::Table SSESpecification.SSEEnabled":                                 "true",
			"DynamoDB::Table SSESpecification.SSEType":                                    "KMS",
			// The key does not serve for ever, nor longer than is chosen. One that goes can be kept for as long as AWS allows.
			"KMS::Key EnableKeyRotation": "true", "KMS::Key RotationPeriodInDays": or("365", "2560"),
			"KMS::Key PendingWindowInDays": "",
			// A table that is kept is in nobody's way, nor is a secret.
			"DynamoDB::Table TableName": "", "SecretsManager::Secret Name": "",
			// AWS makes the password when it makes the secret: nobody can read it in a template, and no deployment changes it.
			"SecretsManager::Secret GenerateSecretString": `{"ExcludePunctuation":true,"GenerateStringKey":"password",` +
				`"PasswordLength":40,"SecretStringTemplate":"{\"username\":\"broker\"}"}`,
			"SecretsManager::Secret SecretString": "", "SecretsManager::Secret KmsKeyId": "<StateKey.Arn>",
			// The next minute's call of the reaper finds what this one left: a call that is repeated, or comes late, would only
			// run beside it.
			"Events::Rule/ScheduleRule ScheduleExpression": "rate(1 minute)", "Events::Rule/ScheduleRule State": "ENABLED",
			"Events::Rule/ScheduleRule EventPattern": "", "Events::Rule/ScheduleRule Targets.1": "",
			"Events::Rule/ScheduleRule Targets.0.Arn":                  "<ReaperFunction.Arn>",
			"Events::Rule/ScheduleRule Targets.0.DeadLetterConfig.Arn": "<DeadLettersQueue.Arn>",
			"Events::Rule/ScheduleRule Targets.0.RetryPolicy": `{"MaximumEventAgeInSeconds":60,` +
				`"MaximumRetryAttempts":0}`,
			// Dead letters are kept for two weeks, and tell of executions that did not end by themselves.
			"SQS::Queue MessageRetentionPeriod": "1209600", "SQS::Queue SqsManagedSseEnabled": "true",
			"Events::Rule/DeadLettersAbandoned EventPattern.source":                   "aws.states",
			"Events::Rule/DeadLettersAbandoned EventPattern.detail-type":              "Step Functions Execution Status Change",
			"Events::Rule/DeadLettersAbandoned EventPattern.detail.status":            "FAILED TIMED_OUT ABORTED",
			"Events::Rule/DeadLettersAbandoned EventPattern.detail.stateMachineArn.0": "<WorkflowStateMachine>",
			// Only a standard state machine remembers the names of executions.
			"StepFunctions::StateMachine StateMachineType":             "STANDARD",
			"StepFunctions::StateMachine RoleArn":                      "<WorkflowRole.Arn>",
			"StepFunctions::StateMachine TracingConfiguration.Enabled": or("", "true"),
			// The address that is chosen is written to. Without the key nothing opens, and a planned deletion leaves seven days
			// or more in which somebody else can say no.
			"SNS::Subscription Protocol": or("", "email"), "SNS::Subscription Endpoint": or("", "ops@example.com"),
			"Events::Rule/OperatorsKey EventPattern.source":                 or("", "aws.kms"),
			"Events::Rule/OperatorsKey EventPattern.detail.eventName":       or("", "DisableKey ScheduleKeyDeletion"),
			"Events::Rule/OperatorsKey EventPattern.detail.resources.ARN.0": or("", theKey),
			"CloudWatch::Dashboard DashboardName":                           or("", "Other"), // which is billed
			// Everybody may call, unless it is chosen who.
			"ApiGateway::RestApi Policy.Statement": or("", `{"Action":"execute-api:Invoke","Effect":"Allow",`+
				`"Principal":{"AWS":"*"},"Resource":"execute-api:/*"} {"Action":"execute-api:Invoke",`+
				`"Condition":{"NotIpAddress":{"aws:SourceIp":["192.0.2.0/24","2001:db8::/32"]}},"Effect":"Deny",`+
				`"Principal":{"AWS":"*"},"Resource":"execute-api:/*"}`),
			"ApiGateway::RestApi Policy.Version": or("", "2012-10-17"),
		}
	})
}

func TestFunctionsAreMadeInOneWay(t *testing.T) {
	says(t, func(or func(usual, chosen string) string) map[string]string {
		places := map[string]string{}
		for function, is := range map[string]struct {
			limit                     time.Duration
			memory, reserved, letters string
		}{
			// The platform waits for the API, the provisioner mostly for AWS, and nobody for the reaper, so that a failed call of
			// it becomes a dead letter. A new account has so little concurrency that nothing can be reserved.
			"ApiFunction":         {app.APITimeout, "512", or("", "20"), ""},
			"ProvisionerFunction": {app.ProvisionerTimeout, "256", "", ""},
			"ReaperFunction":      {app.ReaperTimeout, "256", or("", "1"), "<DeadLettersQueue.Arn>"},
		} {
			for member, want := range map[string]string{
				"Timeout": fmt.Sprint(is.limit.Seconds()), "MemorySize": is.memory, "ReservedConcurrentExecutions": is.reserved,
				"DeadLetterConfig.TargetArn": is.letters, "Role": "<" + function + "Role.Arn>", "Handler": "bootstrap",
				"Runtime": "provided.al2023", "Architectures": or("arm64", "x86_64"), // ARM costs less
				"LoggingConfig.LogFormat": "JSON", "LoggingConfig.LogGroup": "<" + function + "Log>",
				"TracingConfig.Mode": or("", "Active"),
				// Nothing else is there that a function could keep or be reached by.
				"VpcConfig": "", "Layers": "", "FileSystemConfigs": "", "FunctionName": "",
			} {
				places["Lambda::Function/"+function+" "+member] = want
			}
			places["Logs::LogGroup/"+function+"Log RetentionInDays"] = or("30", "7")
		}
		for _, function := range []string{"Reaper", "Provisioner"} { // which pages ask for facts
			for member, want := range map[string]string{"FunctionName": "<" + function + "Function>", "Qualifier": "$LATEST",
				"MaximumRetryAttempts": "0", "MaximumEventAgeInSeconds": "60"} {
				places[fmt.Sprintf("Lambda::EventInvokeConfig/%s %s", function, member)] = want
			}
		}
		return places
	})
	for name, variant := range variants {
		expect.Same(t, name+": functions have a log each", len(functionNames), len(must(t, variant).of("AWS::Logs::LogGroup")))
	}
}
