package template

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"maps"
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
	// s3:CreateBucket. They are empty for the few types whose handlers are not published, and for
	// CloudFormation's own, for which the service role needs no right.
	create, read, update, remove []string
}

// calls returns all calls that CloudFormation makes.
func (s schema) calls() []string { return slices.Concat(s.create, s.read, s.update, s.remove) }

// described holds the columns of the data by the type that each line describes.
var described = sync.OnceValue(func() map[string][]string {
	r, _ := gzip.NewReader(bytes.NewReader(resources)) // a test reads all of it
	text, _ := io.ReadAll(r)
	all := map[string][]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		columns := strings.Split(line, "\t")
		all[columns[0]] = columns
	}
	return all
})

// schemaOf returns the schema of a type; false if the type is not known.
func schemaOf(kind string) (s schema, known bool) {
	if isCustom(kind) {
		kind = customResource
	}
	columns, known := described()[kind]
	if !known {
		return s, false
	}
	for _, path := range strings.Fields(columns[1] + " " + columns[2]) {
		s.fixed = append(s.fixed, strings.Split(path, "/"))
	}
	s.names = map[string]bool{}
	for _, name := range strings.Fields(columns[3]) {
		s.names[strings.TrimPrefix(name, "!")] = name[0] == '!'
	}
	if strings.HasPrefix(kind, "AWS::CloudFormation::") {
		return s, true
	}
	for i, into := range []*[]string{&s.create, &s.read, &s.update, &s.remove} {
		*into = strings.Fields(columns[5+i])
	}
	return s, true
}

// kinds returns the names of all known types.
func kinds() []string { return slices.Sorted(maps.Keys(described())) }

const customResource = "AWS::CloudFormation::CustomResource"

// isCustom reports whether a function of the operator makes resources of the type.
func isCustom(kind string) bool { return kind == customResource || strings.HasPrefix(kind, "Custom::") }

// holdsNothing matches the types of resources that can be made anew without a loss: they only grant
// rights to others, or watch. A type that is not known counts as holding something.
var holdsNothing = regexp.MustCompile(`^AWS::((IAM|CloudWatch|ApplicationAutoScaling)::.*|` +
	`KMS::Alias|Lambda::Permission|SNS::Subscription|Events::Rule|.*Policy)$`)
