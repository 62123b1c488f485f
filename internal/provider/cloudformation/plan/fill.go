package plan

import (
	"fmt"
	"regexp"
	"strings"
)

// braced matches ${…}. Without a closing brace, it matches up to the end of the text.
var braced = regexp.MustCompile(`\$\{([^}]*)(}?)`)

// Fill replaces each ${NAME} of a text by the value of that name, and does not look for names in
// values. Variables of IAM, such as ${aws:username} and ${*}, have a single colon or no name, and
// stay. A name without a value is an error.
func Fill(text string, values map[string]string) (filled string, err error) {
	filled = braced.ReplaceAllStringFunc(text, func(part string) string {
		name, closed := strings.CutSuffix(part[len("${"):], "}")
		value, known := values[name]
		switch {
		case !closed:
			err = fmt.Errorf("%q is not closed", part)
		case known:
			return value
		case !isIAMs(name) && err == nil:
			err = fmt.Errorf("there is no value for %q", part)
		}
		return part
	})
	if err != nil {
		return "", err
	}
	return filled, nil
}

// isIAMs reports whether the text between the braces is a variable of IAM policies.
func isIAMs(name string) bool {
	return name == "*" || name == "?" || name == "$" || strings.Contains(name, ":") && !strings.Contains(name, "::")
}

// Names returns the names of the values that Fill needs for a text, in order.
func Names(text string) (names []string) {
	for _, found := range braced.FindAllStringSubmatch(text, -1) {
		if name, closed := found[1], found[2]; closed != "" && !isIAMs(name) {
			names = append(names, name)
		}
	}
	return names
}
