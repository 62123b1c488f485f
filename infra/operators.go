package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// NewTopic returns the topic that operators are told by: the given one, or one that writes to the
// given address once its owner has confirmed the subscription. With neither topic nor address, it is
// nil, and the deployment warns.
func NewTopic(scope constructs.Construct, s Settings, key awskms.IKey) (told awssns.ITopic) {
	scope = subscope(scope, "Operators")
	switch {
	case s.AlarmTopic != "":
		told = awssns.Topic_FromTopicArn(scope, new("Topic"), &s.AlarmTopic)
	case s.AlarmEmail != "":
		topic := awssns.NewTopic(scope, new("Topic"), &awssns.TopicProps{
			DisplayName: new("Alarms of the service broker"), EnforceSSL: new(true),
		})
		// A policy of the topic's own replaces the default one, which lets the alarms of the account write.
		topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Sid: new("Alarms"), Actions: jsii.Strings("sns:Publish"), Resources: &[]*string{topic.TopicArn()},
			Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(new("cloudwatch.amazonaws.com"), nil)},
			Conditions: &map[string]any{
				"StringEquals": map[string]*string{"aws:SourceAccount": awscdk.Stack_Of(scope).Account()},
			},
		}))
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(&s.AlarmEmail, nil))
		told = topic
	default:
		awscdk.Annotations_Of(scope).AddWarningV2(new("longshore:nobody"), new(
			"Alarms reach nobody: they are only shown in CloudWatch. Deploy with -c alarm-email=ADDRESS "+
				"or -c alarm-topic=ARN"))
		return nil
	}
	watchKey(scope, told, key)
	return told
}

// watchKey notifies the operators when somebody disables the key or schedules its deletion: after that,
// no sealed record could be read. AWS sends this event only if the account has a CloudTrail trail.
// Without one, the alarm NoReaper is raised within ten minutes, since the table needs the same key.
func watchKey(scope constructs.Construct, told awssns.ITopic, key awskms.IKey) {
	rule := awsevents.NewRule(scope, new("Key"), &awsevents.RuleProps{
		Description: new("Reports that the key was disabled or scheduled for deletion"),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.kms"),
			DetailType: jsii.Strings("AWS API Call via CloudTrail"),
			Detail: &map[string]any{
				"eventSource": jsii.Strings("kms.amazonaws.com"),
				"eventName":   jsii.Strings("DisableKey", "ScheduleKeyDeletion"),
				"resources":   map[string]any{"ARN": &[]*string{key.KeyArn()}},
			},
		},
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewSnsTopic(told, nil)},
	})
	// The account and region of the stack are not known here; the topic's ARN has them.
	awscdk.Annotations_Of(rule).AcknowledgeWarning(new("@aws-cdk/aws-events:ruleUnresolvedEnvironment"), nil)
}
