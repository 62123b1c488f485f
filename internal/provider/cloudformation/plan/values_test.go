package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// CloudFormation compares texts: no number has an exponent, whether an order gives it or the settings
// of a plan, which are read as floats.
func TestNumbers(t *testing.T) {
	for want, v := range map[string]any{
		"1000000": 1e6, "123456789": json.Number("1.23456789e8"), "4": 4.0, "0.00001": 1e-5, "21000000,-2.5": []any{2.1e7, -2.5},
	} {
		if got, why := plan.Text(v); got != want || why != "" {
			t.Errorf("%v is %q, want %q; %s", v, got, want, why)
		}
	}
}
