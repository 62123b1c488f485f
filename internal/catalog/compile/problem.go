package compile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
)

// Problems are all problems of one Load, so that an operator can fix them in one go. Each names a file:
// the source's name and the file's name in it, or the source's name alone if the problem is the folder.
// They carry no value from a file other than names and ids, since files can hold a dashboard client's
// secret. They are ordered by file and line, so the same files give the same text.
type Problems []advice.Error

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted orders problems as Problems promises, and drops duplicates: plans may share settings,
// through aliases, and files.
func sorted(problems []advice.Error) Problems {
	slices.SortFunc(problems, func(a, b advice.Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.What, b.What))
	})
	return slices.CompactFunc(problems, func(a, b advice.Error) bool { return a.Error() == b.Error() })
}
