package template

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// resources holds what AWS's own schemas say about each type of resource; resources.py
// wrote it, and describes its lines.
//
//go:embed resources.txt.gz
var resources []byte

// A schema describes a type of resource.
type schema struct {
	// fixed holds the properties that cannot change in place, or not always, as paths in which *
	// stands for any item.
	fixed [][]string
	// names holds the properties that may name the resource; true for a name that the type
	// requires.
	names map[string]bool
	// create, read, update and remove list the calls that CloudFormation makes, such as
	// s3:CreateBucket. They are empty for the few types whose handlers are not published.
	create, read, update, remove []string
}

// calls returns all calls that CloudFormation makes.
func (s schema) calls() []string { return slices.Concat(s.create, s.read, s.update, s.remove) }

// lines returns the lines of the data, which are sorted.
var lines = sync.OnceValue(func() []string {
	r, err := gzip.NewReader(bytes.NewReader(resources))
	if err != nil {
		panic("the embedded schemas of resources are no gzip: " + err.Error())
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic("the embedded schemas of resources are cut off: " + err.Error())
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
})

// schemaOf returns the schema of a type; false if the type is not known.
func schemaOf(kind string) (s schema, known bool) {
	if isCustom(kind) {
		kind = customResource
	}
	i, found := slices.BinarySearchFunc(lines(), kind, func(line, kind string) int {
		name, _, _ := strings.Cut(line, "\t")
		return strings.Compare(name, kind)
	})
	if !found {
		return s, false
	}
	columns := strings.Split(lines()[i], "\t")
	for _, path := range strings.Fields(columns[1] + " " + columns[2]) {
		s.fixed = append(s.fixed, strings.Split(path, "/"))
	}
	s.names = map[string]bool{}
	for _, name := range strings.Fields(columns[3]) {
		s.names[strings.TrimPrefix(name, "!")] = name[0] == '!'
	}
	for i, into := range []*[]string{&s.create, &s.read, &s.update, &s.remove} {
		*into = strings.Fields(columns[5+i])
	}
	return s, true
}

// kinds returns the names of all known types.
func kinds() []string {
	all := make([]string, len(lines()))
	for i, line := range lines() {
		all[i], _, _ = strings.Cut(line, "\t")
	}
	return all
}

const customResource = "AWS::CloudFormation::CustomResource"

// isCustom reports whether a function of the operator makes resources of the type.
func isCustom(kind string) bool { return kind == customResource || strings.HasPrefix(kind, "Custom::") }

// holdsNothing matches the types of resources that can be made anew without a loss: they only grant
// rights to others, or watch. A type that is not known counts as holding something.
var holdsNothing = regexp.MustCompile(`^AWS::((IAM|CloudWatch|ApplicationAutoScaling)::.*|` +
	`KMS::Alias|Lambda::Permission|SNS::Subscription|Events::Rule|.*Policy)$`)
