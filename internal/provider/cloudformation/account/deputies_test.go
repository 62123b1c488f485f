package account_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// shippedOffering is one that ships.
func shippedOffering(t *testing.T, name string) account.Offering {
	t.Helper()
	all := expect.Get(offeringfiles.Load(""))(t)
	offerings := expect.Get(account.OfferingsOf(all))(t)
	return offerings[slices.IndexFunc(offerings, func(o account.Offering) bool { return o.Name == name })]
}

// bindingOf is what a binding of an offering's first plan may do, filled as when it is made.
func bindingOf(t *testing.T, o account.Offering, s plan.Scope, p plan.Location, outputs map[string]string) []iampolicy.Document {
	t.Helper()
	raw := expect.Get(json.Marshal(o.Policies[0].Document))(t)
	values := map[string]string{plan.ValuePartition: p.Partition, plan.ValueAccount: p.Account, plan.ValueRegion: p.Region,
		plan.ValuePrefix: s.Prefix(), plan.ValueSpacePrefix: s.SpacePrefix("space234")}
	maps.Copy(values, outputs)
	text := expect.Get(plan.FillPolicy(plan.User, raw, values))(t)
	return []iampolicy.Document{expect.Get(iampolicy.Parse([]byte(text)))(t)}
}

const (
	near   = "arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-space234-x-queue"
	queued = "arn:aws:sqs:eu-central-1:111122223333:payroll"
	topic  = "arn:aws:sns:eu-central-1:111122223333:longshore-abcdefgh-i-space234-x-topic"
	rule   = "arn:aws:events:eu-central-1:111122223333:rule/longshore-abcdefgh-i-space234-x-bus/r"
)

func targets(arns ...string) map[string][]string {
	return map[string][]string{"events:TargetArn": arns}
}

func subscribed(protocol, endpoint string) map[string][]string {
	return map[string][]string{"sns:Protocol": {protocol}, "sns:Endpoint": {endpoint}}
}

// deputies are calls by which a binding would have another service act for it, on what trusts that service.
var deputies = []call{
	{"a queue of the space", "events:PutTargets", rule, targets(near), true},
	{"a topic of the broker", "events:PutTargets", rule, targets(topic), false},
	{"somebody's queue", "events:PutTargets", rule, targets(queued), false},
	{"one of several", "events:PutTargets", rule, targets(near, queued), false},
	{"a function", "events:PutTargets", rule, targets("arn:aws:lambda:eu-central-1:111122223333:function:payroll"), false},
	{"another broker's", "events:PutTargets", rule, targets(strings.ReplaceAll(near, "abcdefgh", "zzzzzzzz")), false},
	{"another account's", "events:PutTargets", rule, targets(strings.Replace(near, "1111", "4444", 1)), false},
	{"all of none is nothing", "events:PutTargets", rule, nil, false},
	{"what it is for", "events:PutRule", rule, nil, true},
	{"the account's own bus", "events:PutTargets", "arn:aws:events:eu-central-1:111122223333:rule/r", targets(near), false},

	{"a queue of the space", "sns:Subscribe", topic, subscribed("sqs", near), true},
	{"the application", "sns:Subscribe", topic, subscribed("https", "https://app.example.com/in"), true},
	{"in the clear", "sns:Subscribe", topic, subscribed("http", "http://app.example.com/in"), false},
	{"at the operator's cost", "sns:Subscribe", topic, subscribed("sms", "+15555550100"), false},
	{"at the operator's cost", "sns:Subscribe", topic, subscribed("email", "a@example.com"), false},
	{"somebody's queue", "sns:Subscribe", topic, subscribed("sqs", queued), false},
	{"a function", "sns:Subscribe", topic, subscribed("lambda", "arn:aws:lambda:eu-central-1:111122223333:function:x"), false},
	{"no condition holds", "sns:Subscribe", topic, nil, false},
	{"half of it", "sns:Subscribe", topic, map[string][]string{"sns:Protocol": {"sqs"}}, false},
	{"AWS asks for it on everything", "sns:Unsubscribe", "*", nil, true},
	{"any subscription's dead letters", "sns:SetSubscriptionAttributes", "*", nil, false},
	{"to a telephone", "sns:Publish", "*", nil, false},
	{"what it is for", "sns:Publish", topic, nil, true},
}

var everything = []iampolicy.Document{{Version: iampolicy.Version, Statement: []iampolicy.Statement{
	{Effect: iampolicy.EffectAllow, Action: iampolicy.Texts{"*"}, Resource: iampolicy.Texts{"*"}},
}}}

// A binding has no other service act for it on what is not of the broker: by its boundary, whatever its policy is, and by its
// policy, which also keeps to the instance's own space.
func TestNoDeputies(t *testing.T) {
	for _, name := range []string{"eventbridge", "sns"} {
		o := shippedOffering(t, name)
		bounds := expect.Get(account.Bounds(scope, o))(t)
		policy := bindingOf(t, o, scope, place, map[string]string{
			"TopicArn": topic, "EventBusName": "longshore-abcdefgh-i-space234-x-bus",
			"EventBusArn": "arn:aws:events:eu-central-1:111122223333:event-bus/b"})
		calls := slices.DeleteFunc(slices.Clone(deputies), func(c call) bool {
			service, _, _ := strings.Cut(c.action, ":")
			return !strings.HasPrefix(name, strings.TrimSuffix(service, "s"))
		})
		t.Run("Boundary/"+name, func(t *testing.T) { decides(t, calls, everything, document(bounds)) })
		far := strings.Replace(near, "space234", "other234", 1)
		t.Run("Policy/"+name, func(t *testing.T) {
			decides(t, append(calls, map[string]call{
				"sns":         {"a queue of another space", "sns:Subscribe", topic, subscribed("sqs", far), false},
				"eventbridge": {"a queue of another space", "events:PutTargets", rule, targets(far), false}}[name]), policy)
		})
	}
}

// A boundary asks what the policies of all instances ask: stars stand for what is one
// instance's own, and a text that takes no stars asks nothing.
func TestBoundariesKeepConditions(t *testing.T) {
	o := queue(t)
	d := expect.Get(iampolicy.Parse([]byte(`{"Version":"2012-10-17","Statement":[{
		"Effect":"Allow","Action":"sqs:SendMessage","Resource":"${QueueArn}",
		"Condition":{
			"StringEquals":{"aws:ResourceTag/a":"b","aws:ResourceTag/own":"${QueueName}"},
			"StringNotLike":{"aws:ResourceTag/c":"${QueueName}*"},
			"ForAllValues:ArnLike":{"aws:SourceArn":"arn:${AWS::Partition}:sns:*:*:${Prefix}${QueueName}"},
			"Null":{"aws:SourceArn":"false"}}}]}`)))(t)
	o.Policies = []account.Policy{{Document: d}}
	bounds := expect.Get(account.Bounds(scope, o))(t)
	want := iampolicy.Condition{
		"StringEquals":         {"aws:ResourceTag/a": {"b"}},
		"ForAllValues:ArnLike": {"aws:SourceArn": {"arn:${AWS::Partition}:sns:*:*:longshore-abcdefgh-*"}},
		"Null":                 {"aws:SourceArn": {"false"}},
	}
	expect.Same(t, "what the boundary asks", want, bounds[0].Condition)
}

// The tag that lets the service role of keys at one goes onto new ones, and onto none that somebody has given a name.
func TestTagsOfKeys(t *testing.T) {
	rights := document(account.ServiceRights(scope, shippedOffering(t, "kms")))
	const key = "arn:aws:kms:eu-central-1:111122223333:key/1"
	with := func(more map[string][]string) map[string][]string {
		all := map[string][]string{"aws:RequestTag/longshore:offering": {"kms"}}
		maps.Copy(all, more)
		return all
	}
	decides(t, []call{
		{"a key is made", "kms:CreateKey", "*", with(nil), true},
		{"and tagged", "kms:TagResource", "*", with(nil), true},
		{"somebody's key", "kms:TagResource", key, with(map[string][]string{"kms:ResourceAliases": {"alias/payroll"}}), false},
		{"another tag", "kms:TagResource", "*", nil, false},
		{"its own key", "kms:TagResource", key,
			with(map[string][]string{"aws:ResourceTag/longshore:offering": {"kms"}, "kms:ResourceAliases": {"alias/x"}}), true},
		{"another broker's", "kms:TagResource", key,
			with(map[string][]string{"aws:ResourceTag/longshore:scope": {string(other)}}), false},
		{"somebody's key", "kms:ScheduleKeyDeletion", key, with(nil), false},
	}, rights)
}

// An emulator knows none of the keys by which subscriptions and targets are bounded, and refuses what asks for them. Without
// them in the policy it takes each attack: then the boundary, which keeps them, is what refuses it.
func TestDeputiesOnAnEmulator(t *testing.T) {
	p := prepare(t)
	topics, buses := sns.NewFromConfig(p.root), eventbridge.NewFromConfig(p.root)
	topic := expect.Get(topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String(string(p.scope) + "-i-topic")}))(t)
	bus := aws.String(string(p.scope) + "-i-bus")
	made := expect.Get(buses.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: bus}))(t)
	expect.Get(buses.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("r"), EventBusName: bus,
		EventPattern: aws.String(`{"source":["a"]}`)}))(t)
	outputs := map[string]string{"TopicArn": *topic.TopicArn, "EventBusName": *bus, "EventBusArn": *made.EventBusArn}
	type binding struct{ topics, rules aws.Config }
	as := func(kind string, bounded bool, policy func(account.Offering) []iampolicy.Statement) (b binding) {
		for name, into := range map[string]*aws.Config{"sns": &b.topics, "eventbridge": &b.rules} {
			o, user := shippedOffering(t, name), iam.CreateUserInput{UserName: aws.String(emulator.Name(kind))}
			if bounded {
				user.PermissionsBoundary = p.boundary(t, o)
			}
			*into = p.as(t, p.root, user, policy(o))
		}
		return b
	}
	shipped := func(o account.Offering) []iampolicy.Statement {
		return bindingOf(t, o, p.scope, p.place, outputs)[0].Statement
	}
	wide := func(account.Offering) []iampolicy.Statement { return everything[0].Statement }
	for name, one := range map[string]struct {
		binding
		taken bool
	}{
		"Binding": {as("binding", true, shipped), false}, "Wide": {as("wide", true, wide), false},
		"Free": {as("free", false, wide), true},
	} {
		t.Run(name, func(t *testing.T) { p.deputies(t, one.topics, one.rules, *topic.TopicArn, *bus, one.taken) })
	}
}

// deputies tries to have SNS and EventBridge act on what is somebody else's.
func (p prepared) deputies(t *testing.T, byTopic, byRule aws.Config, topic, bus string, taken bool) {
	mine := expect.Get(sns.NewFromConfig(p.root).Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic,
		Protocol: aws.String("email"), Endpoint: aws.String("a@example.com"), ReturnSubscriptionArn: true}))(t)
	payroll := "arn:aws:sqs:" + p.place.Region + ":" + p.place.Account + ":payroll"
	subscribe := func(protocol, endpoint string) try {
		return try{"at the cost of others", taken, called(sns.NewFromConfig(byTopic).Subscribe,
			&sns.SubscribeInput{TopicArn: &topic, Protocol: &protocol, Endpoint: &endpoint})}
	}
	attempt(t, []try{
		subscribe("sms", "+15555550100"), subscribe("email", "b@example.com"), subscribe("sqs", payroll),
		{"what it is for", true, called(sns.NewFromConfig(byTopic).Publish,
			&sns.PublishInput{TopicArn: &topic, Message: aws.String("x")})},
		{"what was subscribed", true, called(sns.NewFromConfig(byTopic).Unsubscribe,
			&sns.UnsubscribeInput{SubscriptionArn: mine.SubscriptionArn})},
		{"somebody's queue", taken, called(eventbridge.NewFromConfig(byRule).PutTargets, &eventbridge.PutTargetsInput{
			Rule: aws.String("r"), EventBusName: &bus, Targets: []eventtypes.Target{{Id: aws.String("1"), Arn: &payroll}}})},
		{"what it is for", true, called(eventbridge.NewFromConfig(byRule).DescribeRule,
			&eventbridge.DescribeRuleInput{Name: aws.String("r"), EventBusName: &bus})},
	})
}

// boundary makes the one of an offering, and gives its ARN.
func (p prepared) boundary(t *testing.T, o account.Offering) *string {
	t.Helper()
	made := expect.Get(iam.NewFromConfig(p.root).CreatePolicy(t.Context(), &iam.CreatePolicyInput{
		PolicyName:     aws.String(emulator.Name(o.Name)),
		PolicyDocument: p.text(t, expect.Get(account.Bounds(p.scope, o))(t))}))(t)
	return made.Policy.Arn
}
