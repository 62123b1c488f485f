package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/metrics"
)

// runbook is where an operator reads on.
const runbook = "docs/operations.md"

// AlarmsProps are what is watched.
type AlarmsProps struct {
	// Stack is the dimension of the broker's own metrics.
	Stack     string
	REST      awsapigateway.RestApi
	Functions map[string]awslambda.Function
	Table     awsdynamodb.ITable
	// DeadLetters tells of what came to no end.
	DeadLetters awssqs.IQueue
	// Topic is the ARN of a topic that is told of alarms; empty for none.
	Topic string
}

// Alarms say that something is wrong and needs somebody. Whatever puts itself
// right in time raises none.
type Alarms struct {
	scope  constructs.Construct
	action awscloudwatch.IAlarmAction
	all    []interfacesawscloudwatch.IAlarmRef
}

// NewAlarms makes the alarms, and one dashboard of what they watch.
func NewAlarms(scope constructs.Construct, id string, props *AlarmsProps) *Alarms {
	a := &Alarms{scope: constructs.NewConstruct(scope, &id)}
	if props.Topic != "" {
		a.action = awscloudwatchactions.NewSnsAction(awssns.Topic_FromTopicArn(a.scope, jsii.String("Topic"), &props.Topic))
	}
	five := awscdk.Duration_Minutes(jsii.Number(5))
	own := func(name, statistic string, dimensions map[string]string) awscloudwatch.Metric {
		all := map[string]*string{metrics.DimensionStack: &props.Stack}
		for k, v := range dimensions {
			all[k] = &v
		}
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String(metrics.Namespace), MetricName: &name, Statistic: &statistic, Period: five, DimensionsMap: &all,
		})
	}
	sum := &awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: five}

	a.add("Failing", "Requests end in a 5xx", &awscloudwatch.AlarmProps{
		Metric: props.REST.MetricServerError(sum), Threshold: jsii.Number(5), EvaluationPeriods: jsii.Number(1),
	})
	var errors, throttles, durations []awscloudwatch.IMetric
	for _, name := range functionNames {
		f := props.Functions[name]
		errors, throttles = append(errors, f.MetricErrors(sum)), append(throttles, f.MetricThrottles(sum))
		durations = append(durations, f.MetricDuration(&awscloudwatch.MetricOptions{Statistic: jsii.String("p99"), Period: five}))
		title := strings.ToUpper(name[:1]) + name[1:]
		a.add(title+"Errors", "The function "+name+" fails", &awscloudwatch.AlarmProps{
			Metric: f.MetricErrors(sum), Threshold: jsii.Number(3), EvaluationPeriods: jsii.Number(1),
		})
		a.add(title+"Throttled", "The function "+name+" is refused: the account has too few executions at once", &awscloudwatch.AlarmProps{
			Metric: f.MetricThrottles(sum), Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(2),
		})
	}
	pastDue := own(metrics.PastDue, "Maximum", nil)
	a.add("Stuck", "Operations are driven again and again", &awscloudwatch.AlarmProps{
		Metric: pastDue, Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(3),
	})
	a.add("NoReaper", "The reaper has not run", &awscloudwatch.AlarmProps{
		Metric: own(metrics.PastDue, "SampleCount", nil), Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(2),
		ComparisonOperator: awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_BREACHING,
	})
	a.add("ReaperHalted", "The reaper found more without a record than it may remove, and leaves it alone until it is told otherwise", &awscloudwatch.AlarmProps{
		Metric: own(metrics.Halted, "Maximum", nil), Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(1),
	})
	// What comes, not what is there: a letter that nobody has taken out would
	// hide that another one has come. Lambda and the rules send theirs as anybody
	// does, so that they are counted, as those that a queue gives to another are
	// not. A queue that nobody has used for six hours tells of the first up to a
	// quarter of an hour late, so the last periods are looked at again.
	dead := props.DeadLetters.MetricNumberOfMessagesSent(sum)
	a.add("DeadLetters", "A call of the reaper was not answered, or an execution ended without settling its operation", &awscloudwatch.AlarmProps{
		Metric: dead, Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(4), DatapointsToAlarm: jsii.Number(1),
	})
	tableThrottled := props.Table.Metric(jsii.String("ThrottledRequests"), sum)
	a.add("TableThrottled", "The table refuses requests", &awscloudwatch.AlarmProps{
		Metric: tableThrottled, Threshold: jsii.Number(10), EvaluationPeriods: jsii.Number(2),
	})

	var accepted, settled []awscloudwatch.IMetric
	for _, kind := range []lifecycle.Kind{lifecycle.Provision, lifecycle.Update, lifecycle.Deprovision, lifecycle.Bind, lifecycle.Unbind} {
		accepted = append(accepted, own(metrics.Accepted, "Sum", map[string]string{metrics.DimensionKind: string(kind)}))
		for _, result := range []lifecycle.Phase{lifecycle.Succeeded, lifecycle.Failed} {
			settled = append(settled, own(metrics.Settled, "Sum", map[string]string{
				metrics.DimensionKind: string(kind), metrics.DimensionResult: string(result),
			}))
		}
	}
	var answered []awscloudwatch.IMetric
	for _, class := range []string{"2xx", "3xx", "4xx", "5xx"} {
		answered = append(answered, own(metrics.Answered, "Sum", map[string]string{metrics.DimensionClass: class}))
	}
	graph := func(title string, lines []awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: &title, Left: &lines, Width: jsii.Number(8), Height: jsii.Number(6)})
	}
	awscloudwatch.NewDashboard(a.scope, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: &props.Stack,
		Widgets: &[]*[]awscloudwatch.IWidget{
			{awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{Alarms: &a.all, Title: jsii.String("Alarms"), Width: jsii.Number(24), Height: jsii.Number(3)})},
			{graph("Requests answered", answered), graph("Operations accepted", accepted), graph("Operations settled", settled)},
			{graph("Past due, and dead letters", []awscloudwatch.IMetric{pastDue, dead}), graph("Functions' errors and refusals", append(errors, throttles...)), graph("Functions' times, p99", durations)},
		},
	})
	return a
}

// add makes an alarm. Unless it says otherwise, no data is a good sign.
func (a *Alarms) add(id, what string, props *awscloudwatch.AlarmProps) {
	props.AlarmDescription = jsii.String(fmt.Sprintf("%s. See %s#%s", what, runbook, strings.ToLower(id)))
	if props.ComparisonOperator == "" {
		props.ComparisonOperator = awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD
	}
	if props.TreatMissingData == "" {
		props.TreatMissingData = awscloudwatch.TreatMissingData_NOT_BREACHING
	}
	alarm := awscloudwatch.NewAlarm(a.scope, &id, props)
	if a.action != nil {
		alarm.AddAlarmAction(a.action)
		alarm.AddOkAction(a.action)
	}
	a.all = append(a.all, alarm)
}
