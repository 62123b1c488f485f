package offeringfiles

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/provider/cloudformation/template"
)

// Lock writes the lock files of the offerings in a folder, and returns the paths of the changed ones. A
// version always stands for the same files: if the files change, the operator raises the version.
func Lock(dir string) (changed []string, err error) {
	source, err := folder(dir)
	if err != nil {
		return nil, err
	}
	locks, err := compile.Lock(compile.Options{Providers: checks()}, source)
	if err != nil {
		return nil, err
	}
	for name, text := range locks {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if was, err := os.ReadFile(path); err == nil && string(was) == string(text) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return changed, fmt.Errorf("writing a lock file: %w", err)
		}
		changed = append(changed, path)
	}
	slices.Sort(changed)
	return changed, nil
}

// Permit adds to the permissions of the offerings in a folder the actions that CloudFormation's handlers
// may call for their templates. It returns what was added, and what is left to the operator.
func Permit(dir string) (template.Permits, error) {
	source, err := folder(dir)
	if err != nil {
		return nil, err
	}
	all, known := template.Permits{}, checks()
	known[app.ProviderCloudFormation] = func(checked check.Plan) (json.RawMessage, error) { return nil, all.Add(checked) }
	if _, err := compile.Lock(compile.Options{Providers: known}, source); err != nil {
		return nil, err
	}
	for path, p := range all {
		if len(p.Added) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.FromSlash(path), p.Text, 0o644); err != nil {
			return all, fmt.Errorf("writing permissions: %w", err)
		}
	}
	return all, nil
}
