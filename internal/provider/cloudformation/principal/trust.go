package principal

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// trust is who may assume the binding's role: those whom the plan names, and only
// with the binding's external id.
func (t *task) trust() (string, error) {
	var who []string
	for _, name := range t.m.Assume {
		if name == "" || strings.ContainsAny(name, "*?$") {
			return "", t.wrong("assume", errors.New("it must name accounts and roles one by one"))
		}
		if strings.Trim(name, "0123456789") == "" {
			name = "arn:" + t.values[plan.ValuePartition] + ":iam::" + name + ":root"
		}
		who = append(who, name)
	}
	if len(who) == 0 {
		return "", t.wrong("assume", errors.New("it names nobody"))
	}
	document, _ := json.Marshal(map[string]any{ // texts only
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": map[string]any{"AWS": who},
			"Condition": map[string]any{"StringEquals": map[string]any{"sts:ExternalId": t.externalID()}},
		}},
	})
	return string(document), nil
}
