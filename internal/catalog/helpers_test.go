package catalog_test

import "github.com/longshore/longshore/internal/test/catalogtest"

// The tests of the catalog and of its compiler share these.
const sound = catalogtest.Sound

var spoil, load = catalogtest.Spoil, catalogtest.Load
