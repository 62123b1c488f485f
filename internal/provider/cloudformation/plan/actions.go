package plan

import (
	"slices"
	"strings"
)

// unnamed are actions that IAM knows no resource of: it asks for them on everything.
var unnamed = []string{"cloudwatch:PutMetricData", "kms:CreateKey", "s3:GetAccountPublicAccessBlock", "sns:Unsubscribe"}

// Unnamed reports whether an action is allowed on everything or not at all.
func Unnamed(action string) bool {
	return slices.ContainsFunc(unnamed, func(one string) bool { return strings.EqualFold(one, action) })
}
