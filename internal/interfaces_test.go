package internal_test

import (
	"go/ast"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// mostMethods is how many methods an interface asks of whoever implements it, those of
// embedded interfaces included: a consumer names what it uses.
const mostMethods = 5

// large are the interfaces that ask for more, and how many. A number may only go down, and no name be added: split what is used
// by two, or take the type itself where there is but one.
var large = map[string]int{
	"internal/front/osb.Broker":                             8,
	"internal/provider/cloudformation.cloud":                14,
	"internal/provider/cloudformation/principal.IAM":        16,
	"internal/provider/cloudformation/principal.Principals": 7,
	"internal/records/store/dynamo.API":                     7,
}

// declared is an interface with the file that it stands in.
type declared struct {
	of   *ast.InterfaceType
	room string
	file *ast.File
}

// interfaces are all that the product declares, by room and name.
func interfaces(t *testing.T) map[string]declared {
	t.Helper()
	found := map[string]declared{}
	for _, r := range rooms(t) {
		if isSuite(r.path) {
			continue
		}
		for _, file := range r.files {
			f := parsed(t, file, 0)
			ast.Inspect(f, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if of, is := spec.Type.(*ast.InterfaceType); is {
						found[r.path+"."+spec.Name.Name] = declared{of, r.path, f}
					}
				}
				return true
			})
		}
	}
	return found
}

// methods are the names of what an interface asks for.
func (d declared) methods(t *testing.T, all map[string]declared) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, m := range d.of.Methods.List {
		for _, name := range m.Names {
			names[name.Name] = true
		}
		if m.Names != nil {
			continue
		}
		at := ""
		switch e := m.Type.(type) {
		case *ast.Ident:
			at = d.room + "." + e.Name
		case *ast.SelectorExpr:
			at = d.imported(e.X.(*ast.Ident).Name) + "." + e.Sel.Name
		default:
			continue // a constraint
		}
		embedded, ok := all[at]
		if !ok {
			t.Errorf("%s embeds %s, which this test does not find", d.room, at)
			continue
		}
		maps.Copy(names, embedded.methods(t, all))
	}
	return names
}

// imported is the room that a file knows by a name.
func (d declared) imported(name string) string {
	for _, spec := range d.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && strings.HasSuffix("/"+path, "/"+name) {
			return strings.TrimPrefix(path, module)
		}
	}
	return name
}

func TestInterfacesAreSmall(t *testing.T) {
	all := interfaces(t)
	for at, d := range all {
		n, limit := len(d.methods(t, all)), max(mostMethods, large[at])
		if n < large[at] {
			t.Errorf("%s asks for %d methods: lower its number, or take it out of the list", at, n)
		}
		if n > limit {
			t.Errorf("%s asks for %d methods, over %d: split it by what is used", at, n, limit)
		}
	}
	for at := range large {
		if _, is := all[at]; !is {
			t.Errorf("%s is no more: take it out of the list", at)
		}
	}
	expect.Least(t, "interfaces", 40, len(all))
}
