package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/base/metrics"
)

// runbook is the document to which the alarms refer.
const runbook = "docs/operations.md"

// NewAlarms makes the alarms, which go to the topic; nobody receives them if it is nil. Alarms say that something
// is wrong and needs a person. A fault that ends by itself in time raises no alarm. CloudWatch bills each metric
// of an alarm, so there are only a few: for faults that clients see, for work that makes no progress, and for the
// reaper, which would notice such work.
func NewAlarms(scope constructs.Construct, s Settings, rest awsapigateway.RestApi, reaper awslambda.Function,
	topic awssns.ITopic) (all []interfacesawscloudwatch.IAlarmRef) {
	scope = subscope(scope, "Alarms")
	// An alarm is raised when a metric has reached a threshold for some periods. Missing data counts as good,
	// unless a change says otherwise.
	add := func(id, what string, metric awscloudwatch.IMetric, threshold, periods int,
		changes ...func(*awscloudwatch.AlarmProps)) {
		props := &awscloudwatch.AlarmProps{
			AlarmDescription: new(fmt.Sprintf("%s. See %s#%s", what, runbook, strings.ToLower(id))),
			Metric:           metric, Threshold: jsii.Number(threshold), EvaluationPeriods: jsii.Number(periods),
			ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
			TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
		}
		for _, change := range changes {
			change(props)
		}
		alarm := awscloudwatch.NewAlarm(scope, &id, props)
		if topic != nil {
			action := awscloudwatchactions.NewSnsAction(topic)
			alarm.AddAlarmAction(action)
			alarm.AddOkAction(action)
		}
		all = append(all, alarm)
	}
	// Each of these faults ends in a 5xx: a function that fails, a function that Lambda refuses to
	// run, or a table or key that cannot be used.
	add("Failing", "Requests end in a 5xx", rest.MetricServerError(each("Sum")), 5, 1)
	add("Stuck", "Operations are started again and again", own(s.Stack, metrics.PastDue, "Maximum", nil), 1, 3)
	// The metric is 0 for a sweep without faults and 1 for one that failed, so its minimum is 1 if
	// all have failed; if none has run, there is no data.
	add("NoReaper", "No sweep of the reaper has ended without a fault", reaper.MetricErrors(each("Minimum")), 1, 2,
		func(props *awscloudwatch.AlarmProps) {
			props.TreatMissingData = awscloudwatch.TreatMissingData_BREACHING
		})
	add("ReaperHalted",
		"The reaper found more things without a record than it may remove, and leaves them alone until an operator resumes it",
		own(s.Stack, metrics.Halted, "Maximum", nil), 1, 1)
	if slices.ContainsFunc(s.providers(), func(name string) bool { return providerRows[name].targets }) {
		// A server that restarts is noticed once. Lasting trouble is written every ten minutes, by
		// waiting operations and by inventories, so that any half hour has two data points.
		add("Waiting", "Operations wait for a server or an account that cannot be used",
			own(s.Stack, metrics.Trouble, "Maximum", nil), 1, 6,
			func(props *awscloudwatch.AlarmProps) { props.DatapointsToAlarm = jsii.Number(2) })
	}
	return all
}

// each returns options for a statistic over each five minutes.
func each(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: &statistic, Period: awscdk.Duration_Minutes(jsii.Number(5))}
}

// own returns a metric that the functions write.
func own(stack, name, statistic string, dimensions map[string]string) awscloudwatch.Metric {
	all := map[string]*string{metrics.DimensionStack: &stack}
	for k, v := range dimensions {
		all[k] = &v
	}
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: new(metrics.Namespace), MetricName: &name, Statistic: &statistic, DimensionsMap: &all,
		Period: awscdk.Duration_Minutes(jsii.Number(5)),
	})
}
