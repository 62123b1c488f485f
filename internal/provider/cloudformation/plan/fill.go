package plan

import (
	"fmt"
	"regexp"
	"strings"
)

// braced is what stands in ${…}; one that is not closed goes on to the text's end.
var braced = regexp.MustCompile(`\$\{([^}]*)(}?)`)

// Fill replaces each ${NAME} of a text by the value of that name; it never reads a value again.
// Variables of IAM, such as ${aws:username} and ${*}, have one colon or no name, and stay. A
// name without a value is an error.
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

// isIAMs reports whether what stands in braces is a variable of IAM's policies.
func isIAMs(name string) bool {
	return name == "*" || name == "?" || name == "$" || strings.Contains(name, ":") && !strings.Contains(name, "::")
}

// Names gives the names of the values that Fill needs for a text, in their order.
func Names(text string) (names []string) {
	for _, found := range braced.FindAllStringSubmatch(text, -1) {
		if name, closed := found[1], found[2]; closed != "" && !isIAMs(name) {
			names = append(names, name)
		}
	}
	return names
}
