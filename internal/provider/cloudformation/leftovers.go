package cloudformation

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	events "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/longshore/longshore/internal/base/awserr"
)

// Bindings make consumers of a stream and rules of a bus, and AWS deletes neither a stream with
// consumers nor a bus with rules. The bindings' principals are gone by then, and cannot remove them
// any more.
const (
	kindStream = "AWS::Kinesis::Stream"
	kindBus    = "AWS::Events::EventBus"
)

// endConsumers deregisters the consumers of a stream. It reports done once there are none, since
// each consumer needs a while to go.
func (a *account) endConsumers(ctx context.Context, stream string) (done bool, err error) {
	about, err := a.kinesis.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: &stream})
	if err != nil {
		return false, fmt.Errorf("looking at a stream: %w", err)
	}
	of := about.StreamDescriptionSummary.StreamARN
	all, err := a.kinesis.ListStreamConsumers(ctx, &kinesis.ListStreamConsumersInput{StreamARN: of})
	if err != nil {
		return false, fmt.Errorf("listing the consumers of a stream: %w", err)
	}
	for _, c := range all.Consumers {
		_, err := a.kinesis.DeregisterStreamConsumer(ctx, &kinesis.DeregisterStreamConsumerInput{StreamARN: of,
			ConsumerName: c.ConsumerName})
		if err != nil && !awserr.Is(err, awserr.Absent, awserr.Busy) {
			return false, fmt.Errorf("ending a consumer of a stream: %w", err)
		}
	}
	return len(all.Consumers) == 0, nil
}

// removeRules removes the rules of a bus, one page per call. It reports done once there are none.
func (a *account) removeRules(ctx context.Context, bus string) (done bool, err error) {
	rules, err := a.events.ListRules(ctx, &events.ListRulesInput{EventBusName: &bus})
	if err != nil {
		return false, fmt.Errorf("listing the rules of a bus: %w", err)
	}
	for _, r := range rules.Rules {
		targets, err := a.events.ListTargetsByRule(ctx, &events.ListTargetsByRuleInput{EventBusName: &bus, Rule: r.Name})
		if awserr.Is(err, awserr.Absent) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("listing the targets of a rule: %w", err)
		}
		var ids []string
		for _, t := range targets.Targets {
			ids = append(ids, aws.ToString(t.Id))
		}
		if len(ids) > 0 {
			_, err = a.events.RemoveTargets(ctx, &events.RemoveTargetsInput{EventBusName: &bus, Rule: r.Name, Ids: ids})
		}
		if err == nil {
			_, err = a.events.DeleteRule(ctx, &events.DeleteRuleInput{EventBusName: &bus, Name: r.Name})
		}
		if err != nil && !awserr.Is(err, awserr.Absent) {
			return false, fmt.Errorf("removing a rule of a bus: %w", err)
		}
	}
	return len(rules.Rules) == 0, nil
}
