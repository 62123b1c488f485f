package internal_test

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// modules are the folders of all Go modules from the root of the repository, the root's own first.
func modules(t *testing.T) (found []string) {
	t.Helper()
	for _, file := range files(t, "..", "go.mod") {
		found = append(found, path.Dir(file))
	}
	slices.Sort(found)
	if len(found) < 3 || found[0] != "." {
		t.Fatalf("there are %q: the test proves nothing", found)
	}
	return found
}

// printed are the words that a command prints.
func printed(t *testing.T, command ...string) []string {
	t.Helper()
	return strings.Fields(string(expect.Get(exec.Command(command[0], command[1:]...).Output())(t)))
}

// Make goes through every module that git knows.
func TestMakeKnowsAllModules(t *testing.T) {
	known := printed(t, "make", "-s", "--no-print-directory", "-C", "..", "modules")
	slices.Sort(known)
	expect.Same(t, "the modules that make knows", modules(t), known)
}

// required are the versions that a module requires of others.
func required(t *testing.T, module string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for line := range strings.Lines(read(t, "../"+module+"/go.mod")) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions
}

// The other modules build the root's code too: Go refuses them as long as they ask for
// other versions than the root does, and their tests with them.
func TestModulesHaveTheSameVersions(t *testing.T) {
	root := required(t, ".")
	for _, module := range modules(t)[1:] {
		shared := 0
		for name, version := range required(t, module) {
			want, ok := root[name]
			if !ok {
				continue
			}
			if shared++; version != want {
				t.Errorf("%s/go.mod requires %s %s, the root %s: run go mod tidy in %s", module, name, version, want, module)
			}
		}
		if shared == 0 {
			t.Errorf("%s/go.mod shares no module with the root's", module)
		}
	}
}

// cdk are parts of the names of modules that the CDK consists of.
var cdk = []string{"jsii", "cdk", "constructs"}

// Only infra needs the CDK: who builds the broker or the kit does not download it.
func TestTheRootNeedsNoCDK(t *testing.T) {
	among := func(module string) (found []string) {
		for name := range required(t, module) {
			if slices.ContainsFunc(cdk, func(part string) bool { return strings.Contains(name, part) }) {
				found = append(found, name)
			}
		}
		return found
	}
	if found := among("."); len(found) > 0 {
		t.Errorf("go.mod requires %q: only infra may", found)
	}
	if len(among("infra")) < len(cdk) {
		t.Error("infra requires no CDK either: the test proves nothing")
	}
}

// Who imports the kit to test a broker of another kind builds nothing that only ours needs.
func TestTheKitNeedsNoCloud(t *testing.T) {
	deps := func(pattern string) []string { return printed(t, "go", "list", "-deps", pattern) }
	clouds := func(packages []string) []string {
		return slices.DeleteFunc(packages, func(p string) bool {
			return !strings.HasPrefix(p, "github.com/aws") &&
				!slices.ContainsFunc(cdk, func(part string) bool { return strings.Contains(p, part) })
		})
	}
	kit := deps("../kit/...")
	if len(kit) < 50 || !slices.Contains(kit, module+"kit/conformance") {
		t.Fatalf("the kit has %d packages: the test proves nothing", len(kit))
	}
	if found := clouds(kit); len(found) > 0 {
		t.Errorf("the kit needs %q", found)
	}
	if len(clouds(deps("../functions/api"))) == 0 {
		t.Error("a function needs no package of AWS either: the test proves nothing")
	}
}
