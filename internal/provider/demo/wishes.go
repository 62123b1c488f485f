package demo

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
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
	w := p.unasked(op)
	first := w.ask(op.Kind, parameters)
	// The plan's settings come last: what the operator fixed is final.
	if f := w.fix(op.Kind, settings); first == nil {
		first = f
	}
	if first != nil {
		return w, first
	}
	return w, nil
}

// removalWishes are those of a deletion: what the parameters asked of it is
// known to the thing. A plan's setting that cannot be understood must not stand
// in the way of a deletion: those that can be count.
func (p *Provider) removalWishes(op provider.Operation, r Removal, settings map[string]any) wishes {
	w := p.unasked(op)
	if r.Delay != nil {
		w.delay = *r.Delay
	}
	w.fail = r.Fails == op.Kind
	_ = w.fix(op.Kind, settings)
	return w
}

// removalOf is what the parameters ask of a deletion. What cannot be understood
// fails the creation, and asks nothing.
func removalOf(parameters json.RawMessage) (r Removal) {
	const unset = -1
	for _, kind := range []provider.Kind{provider.KindDeprovision, provider.KindUnbind} {
		w := wishes{delay: unset}
		_ = w.ask(kind, parameters)
		if w.delay != unset {
			r.Delay = &w.delay
		}
		if w.fail {
			r.Fails = kind
		}
	}
	return r
}

// unasked is what an operation is like that nobody asks anything of.
func (p *Provider) unasked(op provider.Operation) (w wishes) {
	if !op.Synchronous {
		w.delay = p.delay
	}
	return w
}

// ask reads the parameters.
func (w *wishes) ask(kind provider.Kind, parameters json.RawMessage) *provider.Failure {
	var given map[string]json.RawMessage
	if len(parameters) > 0 && json.Unmarshal(parameters, &given) != nil {
		return &provider.Failure{Message: "The parameters are not a JSON object."}
	}
	var first *provider.Failure
	if v, ok := given["delay_seconds"]; ok {
		var n any
		_ = json.Unmarshal(v, &n) // a number out of range stays nil, which is refused
		if !w.setDelay(n) {
			first = &provider.Failure{Message: `The parameter "delay_seconds" must be a number of seconds from 0 to 604800.`}
		}
	}
	if v, ok := given["fail"]; ok && !w.setFail(kind, v) && first == nil {
		first = &provider.Failure{
			Message: `The parameter "fail" must be true, false, or one of "provision", "update", "deprovision", "bind", "unbind".`,
		}
	}
	return first
}

// fix reads the plan's settings.
func (w *wishes) fix(kind provider.Kind, settings map[string]any) *provider.Failure {
	var first *provider.Failure
	if v, ok := settings["delay_seconds"]; ok && !w.setDelay(v) {
		first = &provider.Failure{
			Message: `The plan's setting "delay_seconds" is not a number of seconds from 0 to 604800. Ask the operator of the service.`,
		}
	}
	if v, ok := settings["fail"]; ok && !w.setPlanFail(kind, v) && first == nil {
		first = &provider.Failure{Message: `The plan's setting "fail" is not a list of kinds of operations. Ask the operator of the service.`}
	}
	return first
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

func (w *wishes) setPlanFail(kind provider.Kind, v any) bool {
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
		w.fail = w.fail || provider.Kind(name) == kind
	}
	return ok
}

// setFail takes the parameter. True means the operation that it is given to,
// which a deletion never is.
func (w *wishes) setFail(kind provider.Kind, v json.RawMessage) bool {
	var wish any
	_ = json.Unmarshal(v, &wish) // it is a part of a valid document
	switch wish := wish.(type) {
	case bool:
		w.fail = w.fail || (wish && !removes(kind))
		return true
	case string:
		w.fail = w.fail || provider.Kind(wish) == kind
		return slices.Contains(kinds, provider.Kind(wish))
	default:
		return false
	}
}
