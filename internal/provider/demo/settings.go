package demo

import (
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog/schema"
)

// maxDelay is the longest time that an operation can be made to take, in seconds: a week.
const maxDelay = 7 * 24 * 60 * 60

// asked are the settings of a plan that users can also give as parameters.
type asked struct {
	Delay *float64 `json:"delay_seconds,omitempty"`
	Fail  kinds    `json:"fail,omitempty"`
}

// settings are the settings of a plan.
type settings struct {
	asked
	Grant     string   `json:"grant"`
	ValidDays *float64 `json:"valid_days"`
}

// kinds lists the kinds of operations that are to fail.
type kinds []operation.Kind

var everyKind = kinds{
	operation.Provision, operation.Update, operation.Bind, operation.Deprovision, operation.Unbind,
}

// UnmarshalJSON reads a kind, a list of kinds, or a boolean: true means the operation that the
// parameter is given to, which is never a deletion.
func (k *kinds) UnmarshalJSON(data []byte) error {
	var all bool
	if json.Unmarshal(data, &all) == nil {
		if *k = nil; all {
			*k = slices.DeleteFunc(slices.Clone(everyKind), operation.Kind.Deletes)
		}
		return nil
	}
	var some []operation.Kind
	if json.Unmarshal(data, &some) != nil {
		some = make([]operation.Kind, 1)
		if json.Unmarshal(data, &some[0]) != nil {
			return errFail
		}
	}
	*k = some
	if slices.ContainsFunc(some, func(one operation.Kind) bool { return !slices.Contains(everyKind, one) }) {
		return errFail
	}
	return nil
}

// These are failures because of wrong parameters. No message repeats a value: a user may have put a
// secret into the wrong place.
var (
	errFail = provider.Failf(`The parameter "fail" must be true, false, or one of "provision", "update", "deprovision", ` +
		`"bind", "unbind".`)
	errDelay  = provider.Failf(`The parameter "delay_seconds" must be a number of seconds from 0 to 604800.`)
	errObject = provider.Failf("The parameters are not a JSON object.")
)

// askedBy reads a user's parameters.
func askedBy(parameters json.RawMessage) (a asked, err error) {
	if len(parameters) == 0 {
		return a, nil
	}
	err = json.Unmarshal(parameters, &a)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, errFail):
		return asked{}, errFail
	case errors.As(err, &wrong) && wrong.Field != "" || err == nil && a.Delay != nil && (*a.Delay < 0 || *a.Delay > maxDelay):
		return asked{}, errDelay
	case err != nil:
		return asked{}, errObject
	}
	return a, nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// settingsOf returns a plan's settings, which Check has accepted.
func settingsOf(fixed map[string]any) (s settings) {
	text, _ := json.Marshal(fixed)
	_ = json.Unmarshal(text, &s)
	return s
}

//go:embed settings.schema.json
var settingsText []byte

var readSettings = schema.Settings[settings]("the demo", settingsText)

// Check is a check.Func. Instances record no snapshot.
func Check(plan check.Plan) (json.RawMessage, error) {
	_, problems := readSettings(plan.Settings)
	return nil, errors.Join(problems...)
}
