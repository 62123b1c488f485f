package plan

import (
	"fmt"
	"strings"
)

// Fill replaces each ${NAME} of a text by the value of that name; a value is put in
// as it is, and never read again. What has one colon or is no name, such as
// ${aws:username} and ${*}, is IAM's own and stays. A name that has no value is an
// error.
func Fill(text string, values map[string]string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("%q is not closed", "${"+rest)
		}
		value, known := values[name]
		switch {
		case known:
			out.WriteString(value)
		case isIAMs(name):
			out.WriteString("${" + name + "}")
		default:
			return "", fmt.Errorf("there is no value for %q", "${"+name+"}")
		}
		text = after
	}
}

// isIAMs reports whether what stands in braces is a variable of IAM's policies.
func isIAMs(name string) bool {
	return name == "*" || name == "?" || name == "$" || strings.Contains(name, ":") && !strings.Contains(name, "::")
}

// Names gives the names of the values that Fill needs for a text, in their order.
func Names(text string) (names []string) {
	for {
		_, rest, found := strings.Cut(text, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return names
		}
		if !isIAMs(name) {
			names = append(names, name)
		}
		text = after
	}
}
