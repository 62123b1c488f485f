package cloudformation

import (
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// A developer is told what to do. The reasons are as CloudFormation and the services word
// them: a property's name in one of them is not taken for the cause.
func TestWords(t *testing.T) {
	const (
		late, full, settings = "not ready in time", "no capacity", "does not accept its settings"
		limited, denied      = "a limit of the service's account", "does not allow it"
	)
	for reason, want := range map[string]string{
		"Value 50000 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided.": settings,
		"Value '2000' at 'timeout' failed to satisfy constraint: Member must have value less than or equal to 900":  settings,
		"The provided VisibilityTimeout is not what AWS takes: invalid":                                             settings,
		"Invalid value for property ReadCapacityUnits: 0":                                                           settings,
		"1 validation error: ProvisionedCapacity is not valid":                                                      settings,
		"Value for parameter RateLimit is invalid: it exceeds 10":                                                   settings,
		"Resource timed out waiting for completion (RequestToken: x)":                                               late,
		"Exceeded attempts to wait":                            late,
		"Custom Resource failed to stabilize in expected time": late,
		"Resource of type 'AWS::X::Y' did not stabilize.":      late,
		"HandlerErrorCode: NotStabilized":                      late,
		"Connection time-out":                                  late,
		"InsufficientDBInstanceCapacity":                       full,
		"There is insufficient capacity in the zone":           full,
		"We currently do not have sufficient m5 capacity":      full,
		"The limit of queues is exceeded":                      limited,
		"User is not authorized: invalid parameter":            denied,
	} {
		got := words(event{logical: "Queue", kind: "AWS::SQS::Queue", status: "CREATE_FAILED", reason: reason})
		expect.Says(t, reason, got, want)
	}
}
