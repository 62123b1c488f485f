package compile

import (
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong with the offering files, and what the
// operator does about it. It never carries a value from the file other than
// names and ids, since files can hold a dashboard client's secret.
type Problem struct {
	// File is the source's name and the file's name in it; the source's name
	// alone when the problem is the folder.
	File string
	// Line counts from 1; 0 when the problem has no place within a file.
	Line int
	// What is wrong, and the Remedy: lower case, no full stop.
	What, Remedy string
}

// String renders the problem as editors and terminals recognise it.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s; %s", p.File, p.What, p.Remedy)
	}
	return fmt.Sprintf("%s:%d: %s; %s", p.File, p.Line, p.What, p.Remedy)
}

// Problems are all problems of one Load, so that an operator mends them in one
// go. They are ordered by source, file and line: the same files give the same
// words.
type Problems []Problem

// Error is one problem for each line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders problems as Problems promises, each once; files is the order of loading.
func sorted(problems []Problem, files []string) Problems {
	rank := make(map[string]int, len(files))
	for i, f := range files {
		rank[f] = i
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if n := rank[a.File] - rank[b.File]; n != 0 {
			return n
		}
		if n := a.Line - b.Line; n != 0 {
			return n
		}
		return strings.Compare(a.What, b.What)
	})
	return slices.Compact(problems)
}
