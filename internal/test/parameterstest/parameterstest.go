// Package parameterstest is a Parameter Store of AWS SSM in memory, for tests:
// what it knows of SSM is what it refuses, as SSM does.
package parameterstest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
)

// SSM's limits: of a standard parameter's value in bytes, of its tags, of a tag's
// value in characters, of a page.
const (
	maxValue    = 4096
	maxTags     = 50
	maxTagValue = 256
	pageSize    = 10
)

var tagValue = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// A Store is a parameters.API.
type Store struct {
	mu   sync.Mutex
	kept map[string]kept
}

type kept struct {
	value   string
	version int64
	tags    map[string]string
}

// New makes an empty store.
func New() *Store { return &Store{kept: map[string]kept{}} }

func invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ValidationException", Message: fmt.Sprintf(format, args...)}
}

// PutParameter refuses what SSM refuses of a standard parameter.
func (s *Store) PutParameter(ctx context.Context, in *ssm.PutParameterInput,
	_ ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, name := aws.ToString(in.Value), aws.ToString(in.Name)
	switch {
	case value == "" || len(value) > maxValue:
		return nil, invalid("a standard parameter holds 1 to %d bytes, not %d", maxValue, len(value))
	case strings.Contains(value, "{{"):
		return nil, invalid("the value refers to another parameter")
	case len(in.Tags) > 0 && aws.ToBool(in.Overwrite):
		return nil, invalid("tags and overwrite can't be used together")
	case len(in.Tags) > maxTags:
		return nil, invalid("%d tags", len(in.Tags))
	}
	tags := map[string]string{}
	for _, t := range in.Tags {
		v := aws.ToString(t.Value)
		if len([]rune(v)) > maxTagValue || !tagValue.MatchString(v) || v != strings.TrimSpace(v) {
			return nil, invalid("tag %q has the value %q", aws.ToString(t.Key), v)
		}
		tags[aws.ToString(t.Key)] = v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, exists := s.kept[name]
	if exists && !aws.ToBool(in.Overwrite) {
		return nil, &types.ParameterAlreadyExists{}
	}
	if exists {
		tags = was.tags
	}
	s.kept[name] = kept{value: value, version: was.version + 1, tags: tags}
	return &ssm.PutParameterOutput{Version: was.version + 1}, nil
}

// GetParameter reads one parameter.
func (s *Store) GetParameter(ctx context.Context, in *ssm.GetParameterInput,
	_ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := aws.ToString(in.Name)
	k, ok := s.kept[name]
	if !ok {
		return nil, &types.ParameterNotFound{}
	}
	p := k.as(name)
	return &ssm.GetParameterOutput{Parameter: &p}, nil
}

func (k kept) as(name string) types.Parameter {
	return types.Parameter{Name: &name, Value: &k.value, Version: k.version, Type: types.ParameterTypeString}
}

// GetParametersByPath reads a page of what is right under a path.
func (s *Store) GetParametersByPath(ctx context.Context, in *ssm.GetParametersByPathInput,
	_ ...func(*ssm.Options)) (*ssm.GetParametersByPathOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after, out := aws.ToString(in.NextToken), &ssm.GetParametersByPathOutput{}
	for _, name := range slices.Sorted(maps.Keys(s.kept)) {
		below, ok := strings.CutPrefix(name, aws.ToString(in.Path)+"/")
		if !ok || strings.Contains(below, "/") || name <= after {
			continue
		}
		if len(out.Parameters) == pageSize {
			out.NextToken = out.Parameters[pageSize-1].Name
			break
		}
		out.Parameters = append(out.Parameters, s.kept[name].as(name))
	}
	return out, nil
}

// DeleteParameter removes one parameter.
func (s *Store) DeleteParameter(ctx context.Context, in *ssm.DeleteParameterInput,
	_ ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.kept[aws.ToString(in.Name)]; !ok {
		return nil, &types.ParameterNotFound{}
	}
	delete(s.kept, aws.ToString(in.Name))
	return &ssm.DeleteParameterOutput{}, nil
}

// Tags are those of a parameter.
func (s *Store) Tags(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.kept[name].tags)
}

// Value is that of a parameter, empty if there is none.
func (s *Store) Value(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[name].value
}

// Put writes a parameter as an earlier program did.
func (s *Store) Put(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[name] = kept{value: value, version: s.kept[name].version + 1}
}
