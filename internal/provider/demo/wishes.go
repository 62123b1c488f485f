package demo

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/longshore/longshore/internal/provider"
)

// maxDelay is the longest time that an operation can be asked to take: a week.
const maxDelay = 7 * 24 * time.Hour

// wishes are what the plan and the parameters ask of one operation.
type wishes struct {
	delay time.Duration
	fail  bool
}

var kinds = []provider.Kind{
	provider.KindProvision, provider.KindUpdate, provider.KindDeprovision, provider.KindBind, provider.KindUnbind,
}

// wishesOf reads the wishes. The error is a *provider.Failure about the first
// one that cannot be understood; the others hold all the same. No message
// repeats a value, since a user may have put a secret into the wrong place.
func (p *Provider) wishesOf(op provider.Operation, parameters json.RawMessage, settings map[string]any) (wishes, error) {
	var w wishes
	if !op.Synchronous {
		w.delay = p.delay
	}
	var first *provider.Failure
	note := func(ok bool, message string) {
		if !ok && first == nil {
			first = &provider.Failure{Message: message}
		}
	}

	var given map[string]json.RawMessage
	if len(parameters) > 0 {
		note(json.Unmarshal(parameters, &given) == nil, "The parameters are not a JSON object.")
	}
	if v, ok := given["delay_seconds"]; ok {
		var n any
		_ = json.Unmarshal(v, &n) // a number out of range stays nil, which is refused
		note(w.setDelay(n), `The parameter "delay_seconds" must be a number of seconds from 0 to 604800.`)
	}
	if v, ok := given["fail"]; ok {
		note(w.setFail(op, v), `The parameter "fail" must be true, false, or one of "provision", "update", "deprovision", "bind", "unbind".`)
	}

	// The plan's settings come last: what the operator fixed is final.
	if v, ok := settings["delay_seconds"]; ok {
		note(w.setDelay(v), `The plan's setting "delay_seconds" is not a number of seconds from 0 to 604800. Ask the operator of the service.`)
	}
	if v, ok := settings["fail"]; ok {
		note(w.setPlanFail(op, v), `The plan's setting "fail" is not a list of kinds of operations. Ask the operator of the service.`)
	}

	if first != nil {
		return w, first
	}
	return w, nil
}

func (w *wishes) setDelay(v any) bool {
	seconds, ok := number(v)
	if !ok || !(seconds >= 0 && seconds <= maxDelay.Seconds()) { // so that NaN is refused
		return false
	}
	w.delay = time.Duration(seconds * float64(time.Second))
	return true
}

// number takes a number as JSON and YAML decoders give it.
func number(v any) (n float64, ok bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case json.Number:
		n, err := strconv.ParseFloat(string(v), 64)
		return n, err == nil
	default:
		return 0, false
	}
}

func (w *wishes) setPlanFail(op provider.Operation, v any) bool {
	var names []any
	switch v := v.(type) {
	case string:
		names = []any{v}
	case []any:
		names = v
	case []string:
		for _, name := range v {
			names = append(names, name)
		}
	default:
		return false
	}
	ok := true
	for _, name := range names {
		name, isString := name.(string)
		if !isString || !slices.Contains(kinds, provider.Kind(name)) {
			ok = false
			continue
		}
		w.fail = w.fail || provider.Kind(name) == op.Kind
	}
	return ok
}

// setFail takes the parameter. True means the operation that it is given to,
// which a deletion never is: it repeats the parameters of the creation.
func (w *wishes) setFail(op provider.Operation, v json.RawMessage) bool {
	var wish any
	_ = json.Unmarshal(v, &wish) // it is a part of a valid document
	switch wish := wish.(type) {
	case bool:
		w.fail = w.fail || (wish && !removes(op.Kind))
		return true
	case string:
		kind := provider.Kind(wish)
		w.fail = w.fail || kind == op.Kind
		return slices.Contains(kinds, kind)
	default:
		return false
	}
}
