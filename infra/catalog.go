package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/offered"
)

// repository is where the paths of context values begin: cdk runs this program
// in infra.
const repository = ".."

// readers are the functions that look plans up.
var readers = []string{FunctionAPI, FunctionProvisioner}

// WriteCatalog compiles what is offered, and lays it beside the program of each
// function that reads it. A broken offering is found here and not by a function
// once it runs.
func WriteCatalog(s Settings) error {
	own := s.Offerings
	if own != "" && !filepath.IsAbs(own) {
		own = filepath.Join(repository, own)
	}
	compiled, err := offered.Compile(own)
	if err != nil {
		return fmt.Errorf("compiling the offerings:\n%w", err)
	}
	for _, name := range readers {
		if err := os.WriteFile(filepath.Join(s.Code, name, app.CatalogFile), compiled, 0o644); err != nil {
			return fmt.Errorf("writing the compiled catalog: %w", err)
		}
	}
	return nil
}
