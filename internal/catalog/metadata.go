package catalog

import (
	"fmt"
)

// metadata reads free metadata, and checks the conventional members, which
// platforms read without looking (CAT-11).
func (o object) metadata(name string) map[string]any {
	metadata := o.mapping(name, form{})
	for _, text := range []string{"displayName", "imageUrl", "longDescription", "providerDisplayName", "documentationUrl", "supportUrl"} {
		if v, ok := metadata[text]; ok && !isText(v) {
			o.odd(name, text, "a string", "put it in quotes")
		}
	}
	if v, ok := metadata["shareable"]; ok {
		if _, ok := v.(bool); !ok {
			o.odd(name, "shareable", "a boolean", "write true or false, without quotes")
		}
	}
	if v, ok := metadata["bullets"]; ok && !isListOf(v, isText) {
		o.odd(name, "bullets", "a list of strings", "write each as a line of text after a hyphen")
	}
	if v, ok := metadata["costs"]; ok && !isListOf(v, isCost) {
		o.odd(name, "costs", "a list of costs", "write each as an amount, such as {usd: 9.5}, and a unit, such as MONTHLY")
	}
	return metadata
}

// odd notes a conventional member of another type, on the line where it stands.
func (o object) odd(name, key, want, remedy string) {
	line := o.lineOf(name)
	for _, m := range o.r.members(o.members[name].value, join(o.path, name)) {
		if m.name == key {
			line = m.line
		}
	}
	o.r.problem(line, fmt.Sprintf("%s is not %s", join(join(o.path, name), key), want), remedy)
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func isListOf(v any, is func(any) bool) bool {
	list, ok := v.([]any)
	for _, item := range list {
		ok = ok && is(item)
	}
	return ok
}

func isCost(v any) bool {
	cost, ok := v.(map[string]any)
	if !ok || !isText(cost["unit"]) {
		return false
	}
	amount, ok := cost["amount"].(map[string]any)
	for _, n := range amount {
		ok = ok && isNumber(n)
	}
	return ok && len(amount) > 0
}
