package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/policytest"
)

// nowhere orders in no place, as the oldest clients may.
func nowhere(t *testing.T, p *process, offering, plan, id string) rented {
	t.Helper()
	r := named(t, p, offering, plan, id)
	body := planBody(r.service, r.plan, `,"context":{"platform":"own"}`)
	expect.Get(ask("PUT", p.url+r.path+async, body, version("2.9")))(t).is(t, "ordering without a place", 202)
	return r
}

// Topics, of both plans, and buses deliver to the queues of their own space, of both plans, and to no others. The emulator
// judges what a topic delivers. It does not judge what a bus does: the policies that the queues have do.
func TestDelivery(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	p := awsRuns(t, a.endpoint, "")
	const space, organization = `"organization_guid":"o","space_guid":"t"`, `"organization_guid":"n","space_guid":"s"`
	deduplicated := `,"parameters":{"content_based_deduplication":true}`
	names := []string{"queue", "fifo queue", "topic", "fifo topic", "bus", "topic of another space",
		"fifo topic of another space", "topic of another organization", "bus of another space", "queue of no space",
		"topic of no space", "bus of no space"}
	ordered := []rented{
		orderIn(t, p, "sqs", "standard", "queue", place), orderIn(t, p, "sqs", "fifo", "fifo-queue", place),
		orderIn(t, p, "sns", "standard", "topic", place), orderIn(t, p, "sns", "fifo", "fifo-topic", place+deduplicated),
		orderIn(t, p, "eventbridge", "standard", "bus", place),
		orderIn(t, p, "sns", "standard", "topic-2", space), orderIn(t, p, "sns", "fifo", "fifo-topic-2", space+deduplicated),
		orderIn(t, p, "sns", "standard", "topic-3", organization), orderIn(t, p, "eventbridge", "standard", "bus-2", space),
		nowhere(t, p, "sqs", "standard", "queue-4"), nowhere(t, p, "sns", "standard", "topic-4"),
		nowhere(t, p, "eventbridge", "standard", "bus-4"),
	}
	bound := map[string]map[string]string{}
	for i, got := range bindAll(ordered...) {
		bound[names[i]] = got
	}
	d := delivery{t, a, sns.NewFromConfig(a.root()), eventbridge.NewFromConfig(a.root()), bound}
	for to, admits := range map[string][]string{
		"queue": {"topic", "fifo topic", "bus"}, "fifo queue": {"fifo topic", "bus"}, "queue of no space": nil,
	} {
		for _, from := range names {
			switch {
			case strings.HasPrefix(to, "fifo") && strings.HasPrefix(from, "topic"): // SNS takes no such subscription
			case strings.Contains(from, "topic"):
				d.publishes(from, to, slices.Contains(admits, from))
			case strings.Contains(from, "bus"):
				d.sends(from, to, slices.Contains(admits, from))
			}
		}
	}
}

// A delivery has things of several spaces, by their names, with the credentials of a binding of each, and clients of
// somebody who may do all.
type delivery struct {
	*testing.T
	account account
	topics  *sns.Client
	rules   *eventbridge.Client
	bound   map[string]map[string]string
}

// publishes has a topic deliver to a queue. The emulator does not know the conditions by
// which a binding subscribes: somebody who may do all does that.
func (d delivery) publishes(from, to string, arrives bool) {
	d.Helper()
	topic, queue := d.bound[from], d.bound[to]
	arn, text := aws.String(topic["topic_arn"]), from+" to "+to
	subscribed := expect.Get(d.topics.Subscribe(d.Context(), &sns.SubscribeInput{TopicArn: arn, Protocol: aws.String("sqs"),
		Endpoint: aws.String(queue["queue_arn"]), ReturnSubscriptionArn: true}))(d, text)
	in := &sns.PublishInput{TopicArn: arn, Message: &text}
	if strings.HasPrefix(from, "fifo") {
		in.MessageGroupId = aws.String("group")
	}
	expect.Get(sns.NewFromConfig(d.account.as(topic)).Publish(d.Context(), in))(d, text)
	d.arrives(text, queue, arrives)
	d.admits(text, queue, "sns", *arn, arrives)
	expect.Get(d.topics.Unsubscribe(d.Context(), &sns.UnsubscribeInput{SubscriptionArn: subscribed.SubscriptionArn}))(d)
}

// sends has a rule of a bus deliver to a queue. On the emulator whatever a rule names gets its events.
func (d delivery) sends(from, to string, admitted bool) {
	d.Helper()
	queue, bus := d.bound[to], aws.String(d.bound[from]["event_bus_name"])
	rule, text := aws.String("greetings"), from+" to "+to
	made := expect.Get(d.rules.PutRule(d.Context(), &eventbridge.PutRuleInput{EventBusName: bus, Name: rule,
		EventPattern: aws.String(`{"source":["application"]}`)}))(d)
	target := eventtypes.Target{Id: aws.String("1"), Arn: aws.String(queue["queue_arn"])}
	if strings.HasPrefix(to, "fifo") {
		target.SqsParameters = &eventtypes.SqsParameters{MessageGroupId: aws.String("group")}
	}
	expect.Get(d.rules.PutTargets(d.Context(), &eventbridge.PutTargetsInput{EventBusName: bus, Rule: rule,
		Targets: []eventtypes.Target{target}}))(d)
	event := eventtypes.PutEventsRequestEntry{EventBusName: bus, Source: aws.String("application"),
		DetailType: aws.String("greeting"), Detail: aws.String(`{"text":"` + text + `"}`)}
	sent := expect.Get(eventbridge.NewFromConfig(d.account.as(d.bound[from])).PutEvents(d.Context(),
		&eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{event}}))(d, text)
	expect.Same(d, text+": events that failed", 0, sent.FailedEntryCount)
	d.arrives(text, queue, true)
	d.admits(text, queue, "events", *made.RuleArn, admitted)
	expect.Get(d.rules.RemoveTargets(d.Context(), &eventbridge.RemoveTargetsInput{EventBusName: bus, Rule: rule,
		Ids: []string{"1"}}))(d)
}

// arrives takes what is in a queue by the queue's own binding.
func (d delivery) arrives(text string, queue map[string]string, want bool) {
	d.Helper()
	api, url := sqs.NewFromConfig(d.account.as(queue)), aws.String(queue["queue_url"])
	read := expect.Get(api.ReceiveMessage(d.Context(),
		&sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1}))(d)
	came := false
	for _, m := range read.Messages {
		came = came || strings.Contains(aws.ToString(m.Body), text)
		in := &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}
		expect.Get(api.DeleteMessage(d.Context(), in))(d)
	}
	expect.Same(d, text+": it came", want, came)
}

// admits judges what a service sends to a queue by the policy that the queue has: as the
// thing that sends, and as others that have nearly its name.
func (d delivery) admits(text string, queue map[string]string, service, source string, want bool) {
	d.Helper()
	has := expect.Get(sqs.NewFromConfig(d.account.root()).GetQueueAttributes(d.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(queue["queue_url"]),
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNamePolicy}}))(d)
	policy := d.policyFor(service, has.Attributes["Policy"])
	judge := func(source, account, tls string) bool {
		return policytest.Allows(policytest.Request{Action: "sqs:SendMessage", Resource: queue["queue_arn"],
			Context: map[string][]string{
				"aws:SourceArn": {source}, "aws:SourceAccount": {account}, "aws:SecureTransport": {tls}}}, policy)
	}
	id := strings.Split(source, ":")[4]
	expect.Same(d, text+": the queue's policy admits it", want, judge(source, id, "true"))
	for reason, got := range map[string]bool{
		"without TLS":              judge(source, id, "false"),
		"from another account":     judge(strings.Replace(source, id, "999999999999", 1), "999999999999", "true"),
		"in the name of another":   judge(source, "999999999999", "true"),
		"from another region":      judge(strings.Replace(source, "us-east-1", "eu-west-1", 1), id, "true"),
		"from the account's bus":   judge(strings.ReplaceAll(source, "-bus/", "-bus-"), id, "true") && service == "events",
		"as another broker's":      judge(strings.Replace(source, "longshore-", "longshore-x", 1), id, "true"),
		"by another service's ARN": judge(strings.Replace(source, ":"+service+":", ":s3:", 1), id, "true"),
	} {
		if got {
			d.Errorf("%s, %s: the queue's policy admits it", text, reason)
		}
	}
}

// policyFor is what a policy of a resource says to a service.
func (d delivery) policyFor(service, text string) []iampolicy.Document {
	d.Helper()
	var all struct {
		Version   string
		Statement []map[string]any
	}
	expect.OK(d, json.Unmarshal([]byte(text), &all), text)
	all.Version = iampolicy.Version
	all.Statement = slices.DeleteFunc(all.Statement, func(s map[string]any) bool {
		of := fmt.Sprint(s["Principal"])
		delete(s, "Principal")
		return of != "*" && of != "map[Service:"+service+".amazonaws.com]"
	})
	return []iampolicy.Document{expect.Get(iampolicy.Parse(expect.Get(json.Marshal(all))(d)))(d)}
}
