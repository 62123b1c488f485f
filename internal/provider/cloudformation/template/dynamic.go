package template

import (
	"regexp"
	"slices"
	"strings"
)

// opening matches the beginning of a dynamic reference, or the first half of it at the end of a
// text.
var opening = regexp.MustCompile(`\{\{|\{$`)

var reference = regexp.MustCompile(`\{\{resolve:[A-Za-z0-9_.:/=+@-]+\}\}`)

// dynamic refuses dynamic references, {{resolve:…}}, that are not written out.
//
// Hazard: CloudFormation resolves them in the result of every function, with the rights of the
// service role. A user whose value is part of a reference chooses the secret. The schema of settings
// refuses references in a plan's own values.
func (c *checker) dynamic() {
	inside := "-" // where the last assembled text stands: assembled has checked all of it
	for _, section := range []string{"Resources", "Outputs", "Conditions"} {
		walk(c.root[section], slot(section), func(at string, v any) {
			if strings.HasPrefix(at, inside+"/") {
				return
			}
			switch name, argument, _ := call(v); name {
			case "Fn::Split":
				c.split(at, argument)
			case "Fn::Sub", "Fn::Join":
				inside = at
				c.assembled(at, v)
				return
			}
			text, _ := v.(string)
			if strings.Contains(reference.ReplaceAllString(text, ""), "{{resolve:") {
				c.wrong(at, "a dynamic reference is not written out",
					"write all of {{resolve:SERVICE:NAME}} in one text")
			}
			if section == "Outputs" && strings.Contains(text, "{{resolve:") {
				c.wrong(at, "an output holds a secret", "remove it: outputs can be read by all who see the stack")
			}
		})
	}
}

// split refuses a function that splits a user's text at anything but commas: if its parts are
// joined again, they could open a reference. Splitting at commas is safe, since the parts of users'
// values between commas are checked, too.
func (c *checker) split(at string, argument any) {
	if list, _ := argument.([]any); len(list) == 2 && list[0] != "," && c.foreign(list[1]) {
		c.wrong(at, "a user's value is split at something other than a comma",
			"have the user give a list: joined again, the parts could become a reference to a secret")
	}
}

// assembled checks a text that a function puts together from pieces.
func (c *checker) assembled(at string, v any) {
	name, argument, _ := call(v)
	var pieces []string
	walk(argument, at, func(at string, v any) {
		if name, argument, _ := call(v); name == "Fn::Split" {
			c.split(at, argument)
		}
		if text, is := v.(string); is {
			pieces = append(pieces, text)
		}
	})
	if name == "Fn::Sub" {
		text, _ := substitution(argument)
		names, parts := placeholders(text)
		if len(names) == 0 {
			return // the text is plain
		}
		pieces = append(pieces, parts...)
	}
	open := slices.ContainsFunc(pieces, func(piece string) bool {
		return opening.MatchString(reference.ReplaceAllString(piece, ""))
	})
	if open && strings.Contains(strings.Join(pieces, ""), "resolve") {
		c.wrong(at, "a dynamic reference is put together by a function",
			"write it out, with no parameter in it: whoever gives the parameter chooses the secret")
	} else if open && c.foreign(v) {
		c.wrong(at, "a user's value stands behind an opening brace",
			"keep {{ and a user's parameters in different texts: CloudFormation could "+
				"take them for a reference to a secret")
	}
}

// foreign reports whether a user or a platform supplies part of a value.
func (c *checker) foreign(v any) bool { return slices.ContainsFunc(allRefs(v), c.isForeign) }

func (c *checker) isForeign(parameter string) bool {
	s := c.Parameters[parameter]
	return s.Parameter != "" || s.Context != ""
}
