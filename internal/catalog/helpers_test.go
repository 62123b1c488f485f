package catalog_test

import "github.com/longshore/longshore/internal/test/catalogtest"

// What the tests of the catalog and of its compiler share.
const sound = catalogtest.Sound

var spoil, load = catalogtest.Spoil, catalogtest.Load
