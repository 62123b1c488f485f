package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/lifecycle"
)

// NewDashboard makes a page with the alarms and the work. The first three dashboards of an account
// are free of charge, and each further one costs $3 a month, so the stack makes one only on request.
func NewDashboard(scope constructs.Construct, stack string, raised []interfacesawscloudwatch.IAlarmRef, deadLetters awssqs.IQueue,
	functions ...awslambda.Function) {
	var accepted, settled, answered, errors, durations []awscloudwatch.IMetric
	for _, kind := range []lifecycle.Kind{lifecycle.Provision, lifecycle.Update, lifecycle.Deprovision, lifecycle.Bind,
		lifecycle.Unbind} {
		accepted = append(accepted, own(stack, metrics.Accepted, "Sum",
			map[string]string{metrics.DimensionKind: string(kind)}))
		for _, result := range []lifecycle.Phase{lifecycle.Succeeded, lifecycle.Failed} {
			settled = append(settled, own(stack, metrics.Settled, "Sum", map[string]string{
				metrics.DimensionKind: string(kind), metrics.DimensionResult: string(result),
			}))
		}
	}
	for _, class := range []string{"2xx", "3xx", "4xx", "5xx"} {
		answered = append(answered, own(stack, metrics.Answered, "Sum", map[string]string{metrics.DimensionClass: class}))
	}
	for _, f := range functions {
		errors = append(errors, f.MetricErrors(each("Sum")), f.MetricThrottles(each("Sum")))
		durations = append(durations, f.MetricDuration(each("p99")))
	}
	late := []awscloudwatch.IMetric{
		own(stack, metrics.PastDue, "Maximum", nil), deadLetters.MetricNumberOfMessagesSent(each("Sum")),
	}
	graph := func(title string, lines []awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
			Title: &title, Left: &lines, Width: jsii.Number(8), Height: jsii.Number(6),
		})
	}
	alarms := awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
		Alarms: &raised, Title: new("Alarms"), Width: jsii.Number(24), Height: jsii.Number(3),
	})
	awscloudwatch.NewDashboard(subscope(scope, "Dashboard"), new("Dashboard"),
		&awscloudwatch.DashboardProps{
			DashboardName: &stack,
			Widgets: &[]*[]awscloudwatch.IWidget{
				{alarms},
				{
					graph("Requests answered", answered), graph("Operations accepted", accepted),
					graph("Operations settled", settled),
				},
				{
					graph("Overdue, and dead letters", late), graph("Functions' errors and refusals", errors),
					graph("Functions' times, p99", durations),
				},
			},
		})
}
