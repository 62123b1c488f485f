package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

const module = "github.com/longshore/longshore/"

// floors are the folders of internal from the top down: a package imports packages of its own floor and of floors below it. The
// programs stand above them, and test beside them: no product imports it.
var floors = []string{"app", "operator", "front", "broker", "work", "records", "provider", "catalog", "lifecycle", "base"}

// programs stand above all floors.
var programs = []string{"cmd/", "functions/", "infra"}

// apart says what packages below a path must not import although their floor would allow it; longer paths add to shorter ones.
var apart = []struct {
	path, reason string
	banned       []string
}{
	{"internal/front/osb", "the wire knows neither storage nor who makes things",
		[]string{"internal/records", "internal/work", "internal/provider", "internal/lifecycle/workflow", "github.com/aws"}},
	{"internal/broker", "decisions are made without the cloud and without HTTP",
		[]string{"net/http", "internal/work", "internal/provider", "internal/records/store"}},
	{"internal/work", "a step knows neither HTTP nor how a provider makes things", []string{"net/http", "internal/provider"}},
	{"internal/work/worker", "a step does not know what drives it", []string{"internal/work/", "internal/records/store"}},
	{"internal/work/reaper", "the reaper never deletes by itself",
		[]string{"internal/base/provider", "internal/work/", "internal/records/store"}},
	{"internal/work/inprocess", "an engine does not know what a step does", []string{"internal/work/", "internal/records"}},
	{"internal/work/stepfunctions", "an engine does not know what a step does", []string{"internal/work/", "internal/records"}},
	{"internal/lifecycle", "records are pure: no input or output, no clock of their own",
		[]string{"net/http", "os", "log/slog", "internal/base/provider"}},
	{"internal/records/store", "the store does not know what records mean", []string{"internal/lifecycle"}},
	{"internal/provider", "providers know neither records nor operations", []string{"internal/lifecycle"}},
	{"internal/catalog", "the catalog knows nothing else of the broker", []string{"net/http", "internal/lifecycle"}},
	{"kit", "the kit is for any broker, and others import it", []string{"internal/", "offerings"}},
	{"kit/cloudcontroller", "a platform asks any broker over HTTP, and needs no checker", []string{"kit/conformance"}},
	{"offerings", "what ships is data", []string{"internal/"}},
}

// below reports whether a package is path or stands below it; a path that ends in a slash is only of what stands below it.
func below(pkg, path string) bool {
	return strings.HasSuffix(path, "/") && strings.HasPrefix(pkg, path) || pkg == path || strings.HasPrefix(pkg, path+"/")
}

// floorOf is the floor of a package; -1 for a program, the kit, the offerings or a test.
func floorOf(pkg string) int {
	rest, inside := strings.CutPrefix(pkg, "internal/")
	if !inside {
		return -1
	}
	name, _, _ := strings.Cut(rest, "/")
	return slices.Index(floors, name)
}

// files are the files below a folder whose names end so, by their paths from there, without what is hidden or installed.
func files(t *testing.T, root, suffix string) (paths []string) {
	t.Helper()
	expect.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			rel, err := filepath.Rel(root, path)
			paths = append(paths, filepath.ToSlash(rel))
			return err
		}
		return nil
	}))
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(expect.Get(os.ReadFile(filepath.FromSlash(path)))(t))
}

func parsed(t *testing.T, path string, mode parser.Mode) *ast.File {
	t.Helper()
	return expect.Get(parser.ParseFile(token.NewFileSet(), filepath.FromSlash(path), nil, mode))(t)
}

// A room is a package's product files.
type room struct {
	path    string
	files   []string
	imports []string
	docs    int
}

var known []room // in the order of their paths, once they are read

func rooms(t *testing.T) []room {
	t.Helper()
	if known != nil {
		return known
	}
	found := map[string]*room{}
	for _, file := range files(t, "..", ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		dir := path.Dir(file)
		if found[dir] == nil {
			found[dir] = &room{path: dir}
		}
		r, f := found[dir], parsed(t, "../"+file, parser.ImportsOnly|parser.ParseComments)
		r.files = append(r.files, "../"+file)
		if strings.TrimSpace(f.Doc.Text()) != "" {
			r.docs++
		}
		for _, spec := range f.Imports {
			r.imports = append(r.imports, strings.TrimPrefix(expect.Get(strconv.Unquote(spec.Path.Value))(t), module))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		known = append(known, *found[dir])
	}
	expect.Least(t, "packages", 60, len(known))
	return known
}

// folders are the names of a folder's folders.
func folders(t *testing.T, of string) (names []string) {
	t.Helper()
	for _, e := range expect.Get(os.ReadDir(of))(t) {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// isSuite reports whether a package is there for tests or measurements alone.
func isSuite(path string) bool {
	return below(path, "internal/test") || below(path, "localstack") || below(path, "bench")
}

func TestFloorsImportDownwards(t *testing.T) {
	const most = 12
	expect.Same(t, "the folders of internal, each a floor, and the tests", slices.Sorted(slices.Values(append(floors, "test"))),
		folders(t, "."))
	if n := len(floors) + 1; n > most {
		t.Errorf("there are %d floors with the tests; %d are the most", n, most)
	}
	for _, r := range rooms(t) {
		if isSuite(r.path) {
			continue
		}
		for _, imported := range r.imports {
			if isSuite(imported) {
				t.Errorf("%q imports %q, which is for tests", r.path, imported)
			}
			if at := floorOf(imported); at >= 0 && floorOf(r.path) > at {
				t.Errorf("%q imports %q, which stands on a floor above it", r.path, imported)
			}
			if floorOf(r.path) >= 0 && slices.ContainsFunc(programs,
				func(p string) bool { return strings.HasPrefix(imported, p) }) {
				t.Errorf("%q imports %q, which is of a program", r.path, imported)
			}
			for _, rule := range apart {
				if below(r.path, rule.path) && !below(imported, r.path) &&
					slices.ContainsFunc(rule.banned, func(b string) bool { return below(imported, b) }) {
					t.Errorf("%q imports %q: %s", r.path, imported, rule.reason)
				}
			}
		}
	}
}

// adapters are the providers' folders, by the names that offering files know them by. Beside them stand what those on shared
// servers have in common, and what calls one in a VPC.
func adapters(t *testing.T) (names []string) {
	t.Helper()
	names = slices.DeleteFunc(folders(t, "provider"), func(name string) bool { return name == "hosted" || name == "remote" })
	expect.Least(t, "adapters", 5, len(names))
	return names
}

func TestAdaptersDoNotKnowOneAnother(t *testing.T) {
	names := adapters(t)
	for _, r := range rooms(t) {
		for _, name := range names {
			path := "internal/provider/" + name
			for _, imported := range r.imports {
				if !below(imported, path) || below(r.path, path) || isSuite(r.path) {
					continue
				}
				// The command line and infra know an account's names and policies, which are data.
				if !below(r.path, "internal/app") && !strings.HasPrefix(r.path, "infra") && !strings.HasPrefix(r.path, "cmd/") {
					t.Errorf("%q imports %q: only the wiring knows a provider", r.path, imported)
				}
			}
		}
	}
}

// AWS is known to its adapters and to the wiring alone.
func TestOnlyAdaptersKnowAWS(t *testing.T) {
	knowing := []string{
		"infra", "infra/deployed", "internal/base/outputs", "functions/api", "functions/provisioner", "functions/reaper",
		"internal/app/deployed", "internal/app/providers", "internal/app/console", "internal/app/embedded",
		"internal/front/gateway", "internal/test/emulator", "internal/base/awserr", "internal/test/faulttest",
		"internal/records/store/dynamo", "internal/test/dynamotest", "internal/records/vault/kms", "internal/work/stepfunctions",
		"internal/provider/remote", "internal/test/servicestest",
		"internal/provider/hosted/secrets",
		"internal/provider/cloudformation", "internal/provider/cloudformation/bootstrap",
		"internal/provider/cloudformation/principal", "internal/test/principaltest",
	}
	for _, r := range rooms(t) {
		for _, imported := range r.imports {
			if strings.HasPrefix(imported, "github.com/aws") && !slices.Contains(knowing, r.path) {
				t.Errorf("room %q imports %q: put what it needs of AWS into an adapter", r.path, imported)
			}
		}
	}
}

// A provider is known to its own folder and to the wiring. Its name stands nowhere else:
// what programs know of it is in its row, and what it is given on AWS in one of infra.
func TestProvidersAreNamedByTheWiringAlone(t *testing.T) {
	found, names := map[string]int{}, adapters(t)
	for _, r := range rooms(t) {
		if below(r.path, "internal/provider") || r.path == "offerings" || isSuite(r.path) {
			continue
		}
		for _, file := range r.files {
			text := read(t, file)
			for _, name := range names {
				if !strings.Contains(text, strconv.Quote(name)) {
					continue
				}
				if found[name]++; !below(r.path, "internal/app") {
					t.Errorf("%s names the provider %q: say it in its rows, below internal/app and in infra/providers.go",
						file, name)
				}
			}
		}
	}
	for _, name := range names {
		if found[name] == 0 {
			t.Errorf("nothing names %q: the test proves nothing", name)
		}
	}
}

// reached are the packages that a package links, with one that imports each.
func reached(t *testing.T, from string) map[string]string {
	t.Helper()
	imports := map[string][]string{}
	for _, r := range rooms(t) {
		imports[r.path] = r.imports
	}
	found, next := map[string]string{}, []string{from}
	for len(next) > 0 {
		room := next[0]
		next = next[1:]
		for _, imported := range imports[room] {
			if _, again := found[imported]; !again {
				found[imported], next = room, append(next, imported)
			}
		}
	}
	return found
}

// Each function links what it runs, since each cold start loads all of it: a catalog is compiled when it is deployed, the API
// calls no provider, and the reaper reaches shared servers through the function inside a VPC.
func TestFunctionsLinkWhatTheyRun(t *testing.T) {
	compilers := []string{"go.yaml.in/", "internal/catalog/compile", "internal/app/offeringfiles"}
	oneMachine := []string{"internal/app/embedded", "internal/app/console", "internal/operator", "internal/records/store/bolt",
		"internal/work/inprocess", "internal/provider/postgres/pgserver", "go.etcd.io/"}
	drivers := []string{"github.com/jackc/", "github.com/go-sql-driver/", "github.com/valkey-io/", "internal/app/adapters"}
	outside := []string{
		"internal/provider/cloudformation", "internal/provider/cloudformation/account",
		"internal/provider/cloudformation/bootstrap", "internal/provider/cloudformation/iampolicy",
		"internal/provider/cloudformation/plan", "internal/provider/cloudformation/principal",
		"internal/provider/cloudformation/recent", "internal/provider/demo", "internal/provider/hosted",
		"internal/provider/hosted/secrets", "internal/provider/remote",
	}
	for function, tc := range map[string]struct {
		reason    string
		providers []string
		banned    [][]string
	}{
		"functions/api": {"the provisioner calls providers", nil,
			[][]string{compilers, oneMachine, drivers,
				{"internal/app/providers", "internal/work/worker", "internal/work/reaper"}}},
		"functions/reaper": {"it lists through the function inside a VPC", outside,
			[][]string{compilers, oneMachine, drivers, {"internal/work/worker", "internal/front/osb", "internal/front/gateway"}}},
		"functions/provisioner": {"it calls all providers", append(slices.Clone(outside), "internal/provider/mariadb",
			"internal/provider/postgres", "internal/provider/postgres/pgconfig", "internal/provider/postgres/pgcopy",
			"internal/provider/postgres/scram", "internal/provider/valkey"),
			[][]string{compilers, oneMachine, {"internal/front/osb", "internal/front/gateway"}}},
	} {
		found := reached(t, function)
		var providers []string
		for path, by := range found {
			if below(path, "internal/provider") {
				providers = append(providers, path)
			}
			if slices.ContainsFunc(slices.Concat(tc.banned...), func(b string) bool { return below(path, b) }) {
				t.Errorf("%s links %q, which %q imports: %s", function, path, by, tc.reason)
			}
		}
		slices.Sort(providers)
		slices.Sort(tc.providers)
		expect.Same(t, function+" links these providers: "+tc.reason, tc.providers, providers)
		if _, ok := found["internal/catalog"]; !ok || len(found) < 20 {
			t.Errorf("%s reaches only %d packages: the test proves nothing", function, len(found))
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
	free := []string{"cmd/longshore", "internal/work/stepfunctions", "internal/app", "internal/operator/folder",
		"internal/provider/demo", "internal/work/inprocess", "internal/records/store/dynamo",
		"internal/provider/cloudformation/bootstrap"}
	for _, r := range rooms(t) {
		if slices.Contains(free, r.path) || isSuite(r.path) {
			continue
		}
		for _, file := range r.files {
			ast.Inspect(parsed(t, file, 0), func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" &&
						slices.Contains([]string{"Now", "Sleep", "Since", "Until"}, s.Sel.Name) {
						t.Errorf("%s uses time.%s: take the time as an input", file, s.Sel.Name)
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
		for _, file := range r.files {
			if seen++; r.path != "internal/provider/hosted" && strings.Contains(read(t, file), "InsecureSkip"+"Verify") {
				t.Errorf("%s leaves verification out", file)
			}
		}
	}
	expect.Least(t, "files that were seen", 100, seen)
}
