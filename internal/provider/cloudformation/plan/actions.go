package plan

import (
	"slices"
	"strings"
)

// unnamed lists actions for which IAM knows no resource: they need the resource *.
var unnamed = []string{"cloudwatch:PutMetricData", "kms:CreateKey", "s3:GetAccountPublicAccessBlock", "sns:Unsubscribe"}

// Unnamed reports whether an action can only be allowed on everything.
func Unnamed(action string) bool {
	return slices.ContainsFunc(unnamed, func(one string) bool { return strings.EqualFold(one, action) })
}
