package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/catalog"
)

// repository is the folder to which paths in context values are relative: cdk runs this program in the folder infra.
const repository = ".."

// readers are the functions that look up plans.
var readers = []string{FunctionAPI, FunctionProvisioner}

// WriteCatalog compiles the offerings, and writes them beside the program of each function that
// reads them, so that a broken offering is found here rather than by a running function. If nothing
// is offered, lacking says what to do: such a stack can be removed, but not deployed.
func WriteCatalog(s Settings) (lacking string, err error) {
	own := s.Offerings
	if own != "" && !filepath.IsAbs(own) {
		whole, err := filepath.Abs(filepath.Join(repository, own)) // so that messages show the whole path
		if err != nil {
			return "", err
		}
		own = whole
	}
	compiled, err := offeringfiles.Compile(own, s.off())
	if err != nil {
		return "", fmt.Errorf("compiling the offerings:\n%w", err)
	}
	all, err := catalog.Open(compiled)
	if err != nil {
		return "", err
	}
	if err := s.checkTargets(all.Offerings()); err != nil {
		return "", err
	}
	// A stack may keep running without plans, so that existing instances can be deleted.
	if withdrawn := slices.Contains(slices.Collect(maps.Values(s.Providers)),
		Withdrawn); len(all.Offerings()) == 0 && !withdrawn {
		lacking = fmt.Sprintf("There is nothing to offer: give -c offerings=DIR, a folder of your offerings (longshore catalog "+
			"new NAME DIR writes a first one); or, to try a broker, -c NAME=%s for one of: %s.", Offered,
			strings.Join(providers.Names(), ", "))
	}
	for _, name := range readers {
		if err := os.WriteFile(filepath.Join(s.Code, name, app.CatalogFile), compiled, 0o644); err != nil {
			return "", fmt.Errorf("writing the compiled catalog: %w", err)
		}
	}
	return lacking, nil
}
