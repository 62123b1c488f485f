// Package offeringfiles compiles the offerings of a broker: those that ship, and the operator's
// own beside them. Programs that start cold hold the result, and import neither this package
// nor the packages that it needs.
package offeringfiles

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/provider/cloudformation/template"
	"github.com/longshore/longshore/offerings"
)

// Load opens the shipped offerings, and compiles the operator's own beside them. Dir is the
// folder of the operator's own, empty for none. Errors are compile.Problems, or an
// *advice.Error about the folder.
func Load(dir string) (*catalog.Catalog, error) {
	if dir == "" {
		return catalog.Open(offerings.Catalog)
	}
	compiled, err := Compile(dir, nil)
	if err != nil {
		return nil, err
	}
	return catalog.Open(compiled)
}

// Compile does what Load does, without opening the result, and without the providers that are
// off. Off holds the way to turn each of them on, for an operator who names it.
func Compile(dir string, off map[string]string) ([]byte, error) {
	shipped, err := catalog.Open(offerings.Catalog)
	if err != nil {
		return nil, err
	}
	var own []compile.Source
	if dir != "" {
		source, err := folder(dir)
		if err != nil {
			return nil, err
		}
		own = append(own, source)
	}
	beside := shipped.Without(slices.Collect(maps.Keys(off)))
	return compile.Compile(compile.Options{Providers: checks(), Off: off, Beside: beside}, own...)
}

// Validate does what Load does, but reads the shipped offerings anew, and warns of doubts that
// are no reason to refuse the operator's own offerings. It also runs cfn-lint on the templates, by its
// name or path, empty for not: unlike the checks here, cfn-lint knows the properties and attributes of all
// types. Its errors are returned as compile.Problems as well; warn receives its warnings.
func Validate(ctx context.Context, dir, cfnLint string, warn func(advice.Error)) (*catalog.Catalog, error) {
	var l linter
	known := checks()
	if cfnLint != "" {
		known[app.ProviderCloudFormation] = l.check
	}
	c, err := compile.Load(compile.Options{Providers: known}, compile.Source{Name: "offerings", FS: offerings.FS})
	if err == nil && dir != "" {
		var own compile.Source
		if own, err = folder(dir); err == nil {
			c, err = compile.Load(compile.Options{Providers: known, Beside: c, Warn: warn}, own)
		}
	}
	if err == nil && cfnLint != "" {
		err = l.run(ctx, cfnLint, warn)
	}
	return c, err
}

// folder returns the source of the operator's own offerings.
func folder(dir string) (compile.Source, error) {
	if _, err := os.ReadDir(dir); err != nil { // there is no folder, or only other users may read it
		return compile.Source{}, &advice.Error{
			Name: fmt.Sprintf("offerings folder %q", dir), What: "is not a folder that can be read",
			Remedy: "name the one that holds yours, DIR/NAME/offering.yaml, with --offerings (of a stack, -c offerings=), " +
				"and let the broker's user read it",
			Cause: err,
		}
	}
	return compile.Source{Name: dir, FS: os.DirFS(dir)}, nil
}

// checks returns the checks of all providers: those in package adapters, which the functions
// hold too, and that of CloudFormation, which only a compiler needs.
func checks() map[string]check.Func {
	all := adapters.Checks()
	all[app.ProviderCloudFormation] = template.Check
	return all
}
