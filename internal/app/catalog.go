package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/longshore/longshore/internal/catalog"
)

// CatalogFile is the compiled catalog, beside the program of each function that
// needs it.
const CatalogFile = "catalog.dat"

// openCatalog opens the compiled catalog that was deployed with this program.
func openCatalog() (*catalog.Catalog, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the compiled catalog: %w", err)
	}
	path := filepath.Join(filepath.Dir(program), CatalogFile)
	compiled, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the compiled catalog, which is deployed with the function: %w", err)
	}
	c, err := catalog.Open(compiled)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
