package template

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// users describes the parameters that users may set: the template's bounds, narrowed by the plan;
// in updates, only those that can change in place.
func (c *checker) users() {
	all := check.Parameters{Properties: mapping{}, Fixed: c.Fixed}
	taken := map[string]string{}
	for name, s := range sorted.Map(c.Parameters) {
		p := c.declared[name]
		if s.Parameter == "" || !slices.Contains(plainTypes, p.kind) {
			continue // another check reports this
		}
		if other, twice := taken[s.Parameter]; twice {
			c.about("parameters."+name+".parameter", "is the one that "+other+" takes",
				"have one parameter of the template for both")
			continue
		}
		taken[s.Parameter] = name
		if needsUser(s, p) {
			all.Required = append(all.Required, s.Parameter)
		}
		all.Properties[s.Parameter] = c.property(name, p, s)
	}
	c.Describe(all)
}

// needsUser reports whether users have to give a parameter because no other source has a value for
// it.
func needsUser(s plan.Source, p parameter) bool {
	return s.Parameter != "" && s.Value == nil && p.fallback == nil && s.Target == "" && s.Context == ""
}

// property returns the JSON Schema of the values that users may give for a template's parameter.
func (c *checker) property(name string, p parameter, s plan.Source) mapping {
	problem := func(what, mend string) {
		c.wrong("/Parameters"+slot(name), "parameter "+name+" "+what, mend)
	}
	property := bounds(p, problem)
	narrow(property, c.Sources[name].Schema, func(keyword, what, mend string) {
		c.about("parameters."+name+".schema."+keyword, what, mend)
	})
	switch most, why, mend := longest(property); {
	case why != "":
		problem(why, mend)
	case most > plan.MaxValue:
		problem(fmt.Sprintf("can be longer than %d bytes, which CloudFormation does not take", plan.MaxValue),
			fmt.Sprintf("bound it: MaxLength up to %d, as a character can have four bytes", plan.MaxValue/utf8Most))
	}
	text, given := scalarText(p.fallback)
	if s.Value != nil {
		text, given = *s.Value, true
	}
	if given && !p.secret && s.Context == "" && s.Target == "" {
		property["default"] = fallback(property, text)
	}
	return property
}

// fallback converts the text of a default into a value that the property's own schema takes.
func fallback(property mapping, text string) any {
	item, list := property["items"].(mapping)
	if !list {
		return typed(property["type"], text)
	}
	values := []any{}
	if text == "" {
		return values
	}
	for one := range strings.SplitSeq(text, ",") {
		values = append(values, typed(item["type"], strings.TrimSpace(one))) // as CloudFormation trims each
	}
	return values
}

// limits maps keywords of JSON Schema to the members of a template's parameter.
var limits = map[string]string{"minimum": "MinValue", "maximum": "MaxValue", "minLength": "MinLength", "maxLength": "MaxLength"}

// bounds expresses the bounds of a template's parameter in JSON Schema.
func bounds(p parameter, problem func(what, mend string)) mapping {
	property := mapping{}
	if text, is := p.members["Description"].(string); is {
		property["description"] = text
	}
	item := property
	switch p.kind {
	case "CommaDelimitedList", "List<Number>":
		item = mapping{}
		property["type"], property["items"] = "array", item
	}
	item["type"] = "string"
	if strings.Contains(p.kind, "Number") {
		item["type"] = "integer"
	}
	for keyword, of := range limits {
		switch text, _ := scalarText(p.members[of]); {
		case p.members[of] == nil:
		case jsonNumber.MatchString(text):
			item[keyword] = json.Number(text)
		default:
			problem("has a "+of+" that is no number", "write a number")
			item[keyword] = json.Number("0")
		}
	}
	if pattern, is := p.members["AllowedPattern"].(string); is {
		if !common(pattern) {
			problem("has an AllowedPattern that regular expression engines read differently",
				"write it of characters, classes such as [a-z], groups, alternatives, and quantifiers such as * and {2,5} alone")
		}
		item["pattern"] = whole(pattern)
	}
	if list, is := p.members["AllowedValues"].([]any); is {
		var values []any
		for _, v := range list {
			text, _ := scalarText(v)
			values = append(values, typed(item["type"], text))
		}
		item["enum"] = values
		if len(values) == 2 && slices.Contains(values, any("true")) && slices.Contains(values, any("false")) {
			delete(item, "enum")
			item["type"] = "boolean"
		}
	}
	return property
}

// whole returns a pattern that matches only whole texts, as CloudFormation does.
func whole(pattern string) string {
	if strings.Contains(pattern, "|") {
		return "^(" + pattern + ")$"
	}
	if pattern = strings.TrimPrefix(pattern, "^"); !strings.HasSuffix(pattern, `\$`) {
		pattern = strings.TrimSuffix(pattern, "$")
	}
	return "^" + pattern + "$"
}

// typed converts the text of a parameter, or of one item of a list, into a JSON value of a type.
func typed(kind any, text string) any {
	switch kind {
	case "integer", "number":
		if jsonNumber.MatchString(text) {
			return json.Number(text)
		}
	case "boolean":
		return text == "true"
	}
	return text
}

var (
	punctuation = regexp.MustCompile(`\\[!-/:-@\[-` + "`" + `{-~]`)
	class       = regexp.MustCompile(`\[\^?[^\[\]\\&]+\]`)
	times       = regexp.MustCompile(`\{[0-9]+(,[0-9]*)?\}`)
)

// common reports whether all readers understand a pattern alike: Java, which CloudFormation uses,
// the platforms, and this program. Such a pattern uses only what JSON Schema recommends (draft
// 2020-12, Core, section 6.4), and escapes punctuation.
func common(pattern string) bool {
	rest := times.ReplaceAllString(class.ReplaceAllString(punctuation.ReplaceAllString(pattern, "x"), "x"), "?")
	_, err := regexp.Compile(pattern)
	return err == nil && !strings.ContainsAny(rest, `\[]{}.`) && !strings.Contains(rest, "(?")
}

// narrow adds a plan's own keywords to a property. It refuses keywords that allow values that the
// template does not: CloudFormation would refuse the order.
func narrow(property, own mapping, wrong func(keyword, what, mend string)) {
	for keyword, v := range sorted.Map(own) {
		was := property[keyword]
		ok := true
		switch {
		case was == nil || keyword == "description":
		case keyword == "type":
			ok = v == was || v == "number" && was == "integer"
		case keyword == "enum":
			list, _ := v.([]any)
			known, _ := was.([]any)
			ok = !slices.ContainsFunc(list, func(v any) bool {
				text, why := plan.Text(v)
				same := func(k any) bool { known, _ := plan.Text(k); return known == text }
				return why != "" || !slices.ContainsFunc(known, same)
			})
		case strings.HasPrefix(keyword, "min"):
			ok = atLeast(v, was)
		case strings.HasPrefix(keyword, "max"):
			ok = atLeast(was, v)
		default:
			ok = false
		}
		if !ok {
			wrong(keyword, "allows values that the template's parameter does not", "narrow its bounds, or change the template")
			continue
		}
		property[keyword] = v
	}
}

const utf8Most = 4 // bytes of a character

// longest returns how many bytes a value of a property can have in CloudFormation. If there is no
// bound, why and mend are set.
func longest(s mapping) (most int, why, mend string) {
	if list, ok := s["enum"].([]any); ok {
		for _, item := range list {
			text, _ := plan.Text(item)
			most = max(most, len(text))
		}
		return most, "", ""
	}
	switch s["type"] {
	case "integer", "number":
		low, high := numberText(s["minimum"]), numberText(s["maximum"])
		if low == "" || high == "" {
			return 0, "takes a user's number without bounds", "write MinValue and MaxValue, or AllowedValues"
		}
		return max(len(low), len(high)), "", ""
	case "string":
		n, ok := count(s["maxLength"])
		if !ok {
			return 0, "takes a user's text without a bound",
				fmt.Sprintf("write MaxLength, up to %d, or AllowedValues", plan.MaxValue/utf8Most)
		}
		return n * utf8Most, "", ""
	case "array":
		n, ok := count(s["maxItems"])
		items, _ := s["items"].(mapping)
		if !ok || items == nil {
			return 0, "takes a user's list without a bound", "write schema: {maxItems: …} beside parameter in the settings"
		}
		one, why, mend := longest(items)
		return n * (one + 1), why, mend
	}
	return len("false"), "", ""
}

// atLeast reports whether a >= b; false if one of them is not a number.
func atLeast(a, b any) bool {
	x, isNumber := new(big.Rat).SetString(numberText(a))
	y, areNumbers := new(big.Rat).SetString(numberText(b))
	return isNumber && areNumbers && x.Cmp(y) >= 0
}

// numberText returns a number of a template or of settings as text; empty if the value is not a
// number.
func numberText(v any) string {
	n, _ := v.(json.Number)
	return n.String()
}

func count(v any) (int, bool) {
	n, err := strconv.Atoi(numberText(v))
	return min(n, plan.MaxValue), err == nil
}

// hidden lists parts of the names that people give to secrets.
var hidden = []string{"password", "passphrase", "secret", "token", "private_key", "api_key"}

// secrets refuses a template's parameter that takes a user's secret and shows it.
func (c *checker) secrets() {
	for name, s := range sorted.Map(c.Parameters) {
		own := c.Sources[name].Schema
		is := own["format"] == "password" || own["writeOnly"] == true
		for _, part := range hidden {
			is = is || strings.Contains(strings.ToLower(s.Parameter), part)
		}
		if p, there := c.declared[name]; is && there && !p.secret {
			c.wrong("/Parameters"+slot(name), "parameter "+name+" takes the secret "+s.Parameter+", and shows it",
				"add NoEcho: true")
		}
	}
}
