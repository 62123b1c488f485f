package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/longshore/longshore/"

// order lists the rooms from the top down: a room imports only rooms below it.
var order = []string{
	"internal",
	"internal/e2e",
	"internal/fuzz",
	"internal/races",
	"internal/rules",
	"infra",
	"infra/deployed",
	"cmd/longshore",
	"functions/api",
	"functions/provisioner",
	"functions/reaper",
	"kit/conformance/report",
	"kit/conformance",
	"kit/cloudcontroller",
	"internal/offered",
	"internal/app",
	"internal/logins",
	"infra/outputs",
	"internal/gateway",
	"internal/osb",
	"internal/platforms",
	"internal/broker",
	"internal/worker",
	"internal/operator",
	"internal/reaper",
	"internal/pgserver",
	"internal/workflow/inprocess",
	"internal/workflow/stepfunctions",
	"internal/workflow",
	"internal/ledger",
	"internal/vault/kms",
	"internal/vault",
	"internal/lifecycle",
	"internal/backup",
	"internal/store/bolt",
	"internal/store/dynamo",
	"internal/store/memory",
	"internal/store",
	"internal/provider/demo/files",
	"internal/provider/demo/parameters",
	"internal/provider/remote",
	"internal/provider/demo",
	"internal/provider/cloudformation",
	"internal/provider/cloudformation/principal",
	"internal/provider/cloudformation/account",
	"internal/provider/cloudformation/template",
	"internal/provider/cloudformation/plan",
	"internal/provider/valkey",
	"internal/provider/postgres",
	"internal/provider/mariadb",
	"internal/pgcopy",
	"internal/provider/hosted",
	"internal/catalog/compile",
	"internal/provider",
	"internal/catalog",
	"internal/schema",
	"internal/spelling",
	"internal/metrics",
	"internal/logs",
	"internal/rates",
	"internal/limits",
	"internal/kind",
	"internal/awserr",
	"internal/iampolicy",
	"internal/remedy",
	"internal/scram",
	"internal/pgconfig",
	"internal/secret",
	"internal/pages",
	"internal/pause",
	"offerings",
}

// apart lists rooms that must not import one another although their places in
// the order would allow it.
var apart = map[string]struct {
	reason string
	banned []string
}{
	"internal/osb": {"the wire knows neither storage nor who makes things",
		[]string{"internal/store", "internal/ledger", "internal/worker", "internal/workflow", "internal/vault", "internal/provider/demo"}},
	"internal/broker": {"decisions are made without the cloud and without HTTP",
		[]string{"net/http", "internal/worker", "internal/reaper", "internal/store", "internal/workflow/inprocess", "internal/provider/demo"}},
	"internal/worker": {"a step does not know what drives it",
		[]string{"net/http", "internal/reaper", "internal/store", "internal/workflow/inprocess", "internal/provider/demo"}},
	"internal/reaper": {"the reaper never deletes by itself",
		[]string{"net/http", "internal/provider", "internal/worker", "internal/store"}},
	"internal/lifecycle": {"records are pure: no input or output, no clock of their own",
		[]string{"net/http", "os", "context", "log/slog", "internal/store", "internal/provider", "internal/catalog"}},
	"internal/store": {"the store does not know what records mean",
		[]string{"internal/lifecycle", "internal/catalog", "internal/provider"}},
	"internal/store/bolt": {"the store does not know what records mean",
		[]string{"internal/lifecycle", "internal/catalog", "internal/provider"}},
	"internal/provider": {"providers know neither HTTP nor the store",
		[]string{"net/http", "internal/store", "internal/lifecycle", "internal/catalog"}},
	"internal/provider/demo": {"providers know neither HTTP nor the store",
		[]string{"net/http", "internal/store", "internal/lifecycle", "internal/catalog"}},
	"internal/catalog": {"the catalog knows nothing else of the broker",
		[]string{"net/http", "internal/lifecycle", "internal/provider", "internal/store"}},
	"kit/cloudcontroller": {"a platform asks any broker over HTTP, and needs no checker", []string{"kit/conformance"}},
	"internal/workflow":   {"an engine does not know what a step does", []string{"internal/worker", "internal/provider", "internal/store"}},
}

// a room is a package's product files.
type room struct {
	path    string
	imports []string
	docs    int
}

func rooms(t *testing.T) []room {
	t.Helper()
	found := map[string]*room{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "..":
			return filepath.SkipDir
		case d.IsDir() && path != ".." && isModule(path):
			return filepath.SkipDir // it has rooms of its own
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), ".."+string(filepath.Separator)))
		r := found[dir]
		if r == nil {
			r = &room{path: dir}
			found[dir] = r
		}
		if hasDoc(f) {
			r.docs++
		}
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			r.imports = append(r.imports, strings.TrimPrefix(name, module))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	var out []room
	for _, r := range found {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b room) int { return strings.Compare(a.path, b.path) })
	if len(out) < len(order) {
		t.Fatalf("found %d rooms, fewer than the %d that are listed", len(out), len(order))
	}
	return out
}

// isModule reports whether a folder is a module beside this one.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func hasDoc(f *ast.File) bool { return f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" }

// isSuite reports whether a package is a test suite that is exported to other
// rooms' tests; it may import what it tests.
func isSuite(path string) bool {
	base := filepath.Base(path)
	return strings.HasSuffix(base, "test") || base == "emulator" || base == "testkit" || base == "testserver"
}

func TestRoomsImportOnlyRoomsBelow(t *testing.T) {
	for _, r := range rooms(t) {
		place := slices.Index(order, r.path)
		if place < 0 {
			if !isSuite(r.path) {
				t.Errorf("room %q has no place in the order: give it one", r.path)
			}
			continue
		}
		for _, imported := range r.imports {
			if isSuite(imported) && strings.HasPrefix(imported, "internal/") {
				t.Errorf("room %q imports the test suite %q", r.path, imported)
			}
			if at := slices.Index(order, imported); at >= 0 && at <= place {
				t.Errorf("room %q imports %q, which stands above it", r.path, imported)
			}
			if strings.HasPrefix(r.path, "kit/") && (strings.HasPrefix(imported, "internal/") || imported == "offerings") {
				t.Errorf("room %q imports %q: the kit is for any broker, and others import it", r.path, imported)
			}
			if slices.Contains(apart[r.path].banned, imported) {
				t.Errorf("room %q imports %q: %s", r.path, imported, apart[r.path].reason)
			}
		}
	}
}

// AWS is known to its adapters and to the wiring alone.
func TestOnlyAdaptersKnowAWS(t *testing.T) {
	adapters := []string{
		"infra", "infra/deployed", "infra/outputs", "functions/api", "functions/provisioner", "functions/reaper", "internal/app",
		"internal/gateway", "internal/emulator", "internal/awserr", "internal/awserr/faulttest",
		"internal/store/dynamo", "internal/store/dynamo/dynamotest", "internal/vault/kms", "internal/workflow/stepfunctions",
		"internal/provider/demo/parameters",
		"internal/provider/demo/parameters/parameterstest", "internal/provider/remote", "internal/servicestest",
		"internal/provider/cloudformation", "internal/provider/cloudformation/principal",
		"internal/provider/cloudformation/principal/principaltest",
	}
	for _, r := range rooms(t) {
		for _, imported := range r.imports {
			if strings.HasPrefix(imported, "github.com/aws") && !slices.Contains(adapters, r.path) {
				t.Errorf("room %q imports %q: put what it needs of AWS into an adapter", r.path, imported)
			}
		}
	}
}

// A provider is known to its own package and to two rows: one of what programs
// know of it, one of what it is given on AWS. Its name stands nowhere else.
func TestAProviderIsNamedInTwoFiles(t *testing.T) {
	rows := []string{"internal/app/providers.go", "infra/providers.go"}
	found := 0
	for _, r := range rooms(t) {
		if strings.HasPrefix(r.path, "internal/provider") || r.path == "offerings" || isSuite(r.path) || r.path == "internal/testkit" {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(r.path), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
			if strings.HasSuffix(path, "_test.go") || !strings.Contains(strings.ToLower(string(text)), "demo") {
				continue
			}
			if found++; !slices.Contains(rows, name) {
				t.Errorf("%s names the demo: say it in its row, in %s", name, strings.Join(rows, " or "))
			}
		}
	}
	if found < len(rows) {
		t.Errorf("only %d files name it: the test proves nothing", found)
	}
}

// What starts cold imports no compiler of catalogs: a function reads what was
// compiled when it was deployed. The library for JSON Schema compiles those of
// all drafts before main.
func TestFunctionsImportNoCompiler(t *testing.T) {
	imports := map[string][]string{}
	for _, r := range rooms(t) {
		imports[r.path] = r.imports
	}
	for _, function := range []string{"functions/api", "functions/provisioner", "functions/reaper"} {
		reached, next := map[string]bool{function: true}, []string{function}
		for len(next) > 0 {
			var room string
			room, next = next[0], next[1:]
			for _, imported := range imports[room] {
				if banned := []string{"go.yaml.in/", "github.com/santhosh-tekuri/", "internal/catalog/compile"}; slices.ContainsFunc(banned,
					func(b string) bool {
						return strings.HasPrefix(imported, b)
					}) {
					t.Errorf("function %q reaches %q, which %q imports", function, imported, room)
				}
				if !reached[imported] {
					reached[imported], next = true, append(next, imported)
				}
			}
		}
		if !reached["internal/catalog"] && function != "functions/reaper" || len(reached) < 20 {
			t.Errorf("function %q reaches only %d packages: the test proves nothing", function, len(reached))
		}
	}
}

func TestEveryPackageHasOneDocComment(t *testing.T) {
	for _, r := range rooms(t) {
		if r.docs != 1 {
			t.Errorf("package %q has %d doc comments, not one", r.path, r.docs)
		}
	}
}

// The clock is an input everywhere but in the wiring and in adapters.
func TestOnlyTheWiringReadsTheClock(t *testing.T) {
	free := []string{"cmd/longshore", "internal/workflow/stepfunctions", "internal/app", "internal/provider/demo",
		"internal/workflow/inprocess", "internal/store/dynamo"}
	for _, dir := range order {
		if slices.Contains(free, dir) {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %q: %v", dir, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Sleep", "Since", "Until"}, s.Sel.Name) {
						t.Errorf("%s uses time.%s: take the time as an input", path, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// No program can leave the verification of certificates out, but for a database server
// of which the operator says sslmode=require: that stands in one place.
func TestNothingSkipsVerification(t *testing.T) {
	seen := 0
	for _, r := range rooms(t) {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(r.path), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if seen++; !strings.HasSuffix(path, "_test.go") && r.path != "internal/provider/hosted" &&
				strings.Contains(string(raw), "InsecureSkip"+"Verify") {
				t.Errorf("%s leaves verification out", path)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d files were seen", seen)
	}
}

// required are the versions that a go.mod requires, by module.
func required(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions
}

// The benchmark is a module of its own, which make bench alone builds. It builds
// the product's code too: Go refuses it as long as it asks for other versions
// than the product does, and the test of the kit on brokerapi with it.
func TestTheBenchmarkHasTheProductsVersions(t *testing.T) {
	product, bench := required(t, "../go.mod"), required(t, "../bench/go.mod")
	shared := 0
	for module, version := range bench {
		want, ok := product[module]
		if !ok {
			continue
		}
		shared++
		if version != want {
			t.Errorf("bench/go.mod requires %s %s, the product %s: run go mod tidy in bench", module, version, want)
		}
	}
	if shared == 0 {
		t.Error("bench/go.mod shares no module with go.mod")
	}
}
