package cloudformation

import (
	"context"
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
)

// existing looks up the values of the existing resource that a plan names.
func (s *step) existing(ctx context.Context) (map[string]string, error) {
	e := s.m.Existing
	found := map[string]string{}
	if len(e.Exports) > 0 {
		all, err := s.exports(ctx)
		if err != nil {
			return nil, s.explain(ctx, err)
		}
		for name, export := range e.Exports {
			value, ok := all[export]
			if !ok {
				return nil, s.missing(ctx, "export", export)
			}
			found[name] = value
		}
	}
	if e.Tag != "" {
		arns, err := s.tagged(ctx, e.Tag, e.Type)
		if err != nil {
			return nil, s.explain(ctx, err)
		}
		if len(arns) != 1 {
			return nil, s.missing(ctx, fmt.Sprintf("tag on exactly one %s (%d found)", e.Type, len(arns)), e.Tag)
		}
		found["Arn"] = arns[0]
		found["Name"] = arns[0][strings.LastIndexAny(arns[0], ":/")+1:]
	}
	return s.values(found), nil
}

func (s *step) missing(ctx context.Context, what, name string) error {
	s.p.Log.ErrorContext(ctx, "a plan names a resource that does not exist", "target", s.name, what, name,
		"remedy", "create it, or name another one in the plan's setting existing")
	return provider.Failf("The resource that this plan gives access to does not exist. Ask the operator of the service.")
}
