package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// Where the schemas of what users may set stand in a plan.
const (
	createAt = "/schemas/service_instance/create/parameters"
	updateAt = "/schemas/service_instance/update/parameters"
	bindAt   = "/schemas/service_binding/create/parameters"
)

// users checks the schemas of what users may set: only what is declared and bounded
// reaches a stack, and an update offers only what can change in place.
func (c *checker) users(m *plan.Settings) {
	uses := accepts(c.parameters)
	create := c.schema(createAt, c.Create, uses)
	update := c.schema(updateAt, c.Update, uses)
	for _, name := range c.schema(bindAt, c.Bind, nil) {
		c.about(bindAt+"/properties"+slot(name), "has no effect", "remove it: what a binding may do is in the plan's policy")
	}
	for _, name := range uses {
		switch in := slices.Contains(create, name) || slices.Contains(update, name); {
		case !in:
			c.about(parameterOf(c.parameters, name), "is no parameter of the plan's schemas", "describe "+name+" in schemas.service_instance.create")
		case slices.Contains(update, name) && slices.Contains(m.Fixed, name):
			c.about(updateAt+"/properties"+slot(name),
				"cannot change once an instance is made: another value would replace a resource, and lose what it holds",
				"remove it from the update's schema")
		}
	}
}

// parameterOf is the setting that takes a parameter of users.
func parameterOf(sources map[string]plan.Source, parameter string) string {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if sources[name].Parameter == parameter {
			return "parameters." + name + ".parameter"
		}
	}
	return ""
}

func decoded(text json.RawMessage) (object map[string]any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&object) // the compiler has looked at it
	return object
}

func requiredOf(text json.RawMessage) (all []string) {
	list, _ := decoded(text)["required"].([]any)
	for _, item := range list {
		name, _ := item.(string)
		all = append(all, name)
	}
	return all
}

// schema checks one, and gives the parameters that it has. Uses are those that have
// an effect, nil for where none has.
func (c *checker) schema(at string, text json.RawMessage, uses []string) []string {
	if len(text) == 0 {
		if len(uses) > 0 {
			c.about("", "take anything of users: the plan has no"+strings.ReplaceAll(at, "/", " "),
				"describe the parameters there, with additionalProperties: false")
		}
		return nil
	}
	object := decoded(text)
	if object["additionalProperties"] != false {
		c.about(at, "takes parameters that it does not describe", "write additionalProperties: false")
	}
	for _, wide := range []string{"patternProperties", "$ref"} {
		if object[wide] != nil {
			c.about(at+slot(wide), "describes parameters without naming them", "write each below properties")
		}
	}
	properties, _ := object["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	if uses == nil {
		return names
	}
	for _, name := range names {
		below := at + "/properties" + slot(name)
		if !slices.Contains(uses, name) {
			c.about(below, "has no effect", "remove it, or write parameters: {NAME: {parameter: "+name+"}} in the settings")
			continue
		}
		described, _ := properties[name].(map[string]any)
		if most, why, mend := longest(described); why != "" {
			c.about(below, why, mend)
		} else if most > plan.MaxValue {
			c.about(below, fmt.Sprintf("can be longer than %d bytes, which CloudFormation does not take", plan.MaxValue),
				fmt.Sprintf("bound it: maxLength up to %d, as a character can have four bytes, or maxItems", plan.MaxValue/utf8Most))
		}
	}
	return names
}

const utf8Most = 4 // bytes of a character

// longest is how many bytes a value that a schema takes can have as CloudFormation
// takes it; or why it cannot be said.
func longest(s map[string]any) (most int, why, mend string) {
	if of := s["const"]; of != nil {
		text, _ := valueText(of)
		return len(text), "", ""
	}
	if list, ok := s["enum"].([]any); ok {
		for _, item := range list {
			text, ok := valueText(item)
			if !ok {
				return 0, "can be what is no value of a template's parameter", "list texts, numbers, true and false only"
			}
			most = max(most, len(text))
		}
		return most, "", ""
	}
	switch s["type"] {
	case "boolean":
		return len("false"), "", ""
	case "integer", "number":
		low, high := numberText(s["minimum"]), numberText(s["maximum"])
		if low == "" || high == "" {
			return 0, "is a number without bounds", "write its minimum and maximum"
		}
		return max(len(low), len(high)), "", ""
	case "string":
		n, ok := count(s["maxLength"])
		if !ok {
			return 0, "is a text without a maxLength", fmt.Sprintf("write maxLength, up to %d", plan.MaxValue/utf8Most)
		}
		return n * utf8Most, "", ""
	case "array":
		n, ok := count(s["maxItems"])
		items, _ := s["items"].(map[string]any)
		if !ok || items == nil {
			return 0, "is a list without a maxItems, or without items", "write both"
		}
		if items["type"] == "array" {
			return 0, "is a list of lists", "write a list of texts or numbers"
		}
		one, why, mend := longest(items)
		return n * (one + 1), why, mend
	}
	return 0, "does not say which values it takes", "write its type: string, integer, number, boolean or array; or enum"
}

func numberText(v any) string {
	n, _ := v.(json.Number)
	return n.String()
}

func count(v any) (int, bool) {
	n, err := strconv.Atoi(numberText(v))
	return min(n, plan.MaxValue), err == nil
}

// hidden are parts of names that people give to what nobody else should see.
var hidden = []string{"password", "passphrase", "secret", "token", "private_key", "api_key"}

// secrets refuses a template's parameter that shows what users give as a secret.
func (c *checker) secrets(t *model) {
	described, _ := decoded(c.Create)["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(c.parameters)) {
		given := c.parameters[name].Parameter
		property, _ := described[given].(map[string]any)
		is := property["format"] == "password" || property["writeOnly"] == true
		for _, part := range hidden {
			is = is || given != "" && strings.Contains(strings.ToLower(given), part)
		}
		if p, there := t.parameters[name]; is && there && !p.secret {
			c.add(t.problem("/Parameters"+slot(name), fmt.Sprintf("parameter %s takes the secret %s, and shows it", name, given),
				"add NoEcho: true"))
		}
	}
}
