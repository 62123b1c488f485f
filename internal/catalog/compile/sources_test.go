package compile_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog/compile"
)

func TestLoadSources(t *testing.T) {
	other := strings.NewReplacer("offering-1", "offering-9", "plan-1", "plan-8", "plan-2", "plan-9", "name: one",
		"name: nine").Replace(sound)
	client := "dashboard_client: {id: client, secret: s3cret, redirect_uri: \"https://example.com\"}\n"
	one := func(of fs.FS) []compile.Source { return []compile.Source{{Name: "mine", FS: of}} }
	for name, tc := range map[string]struct {
		reason  string
		sources []compile.Source
		want    []found
	}{
		"None": {"A broker without a folder has nothing to offer.", nil, []found{{"offerings", 0, "no folder"}}},
		"EmptyFolder": {"An operator who names a folder means it to hold something; each is judged by itself.", []compile.Source{
			{Name: "shipped", FS: folder(map[string]string{"a/offering.yaml": sound})},
			{Name: "mine", FS: folder(map[string]string{"README.md": "", ".hidden.yaml": "{", ".git/offering.yaml": other})},
		}, []found{{"mine", 0, "no offering"}}},
		"Misplaced": {"What looks like an offering and would not be read is told of, and where it belongs.",
			one(folder(map[string]string{"a.yaml": sound, "b/offering.yml": other, "c/offering.yaml": sound})),
			[]found{{"mine/a.yaml", 0, "move it to mine/a/offering.yaml"},
				{"mine/b", 0, "holds no offering.yaml; rename offering.yml"}}},
		"UnreadableFolder": {"A folder that its owner alone may read is not taken for an empty one.",
			one(unreadable{folder(map[string]string{"a/offering.yaml": sound, "b/offering.yaml": other}), "b"}),
			[]found{{"mine/b", 0, "cannot be read"}}},
		"TooLargeFile": {"A file beyond any real one is not read into memory.",
			[]compile.Source{mine(strings.Repeat("#", 1<<20+1))}, []found{{"mine/a/offering.yaml", 1, "larger"}}},
		"UniqueAcrossSources": {
			"CAT-04: ids, offering names and client ids are unique over all files; the later file is at fault.", []compile.Source{
				{Name: "shipped", FS: folder(map[string]string{"a/offering.yaml": sound + client})},
				{Name: "mine", FS: folder(map[string]string{
					"a/offering.yaml": strings.Replace(other, "offering-9", "offering-1", 1) + client,
					"b/offering.yaml": strings.NewReplacer("offering-9", "plan-1", "plan-8", "plan-2", "plan-9", "plan-7",
						"name: nine", "name: one").Replace(other)})},
			}, []found{{"mine/a/offering.yaml", 1, "shipped/a/offering.yaml:1"},
				{"mine/a/offering.yaml", 14, "shipped/a/offering.yaml:14"},
				{"mine/b/offering.yaml", 1, "shipped/a/offering.yaml:8"},
				{"mine/b/offering.yaml", 2, "shipped/a/offering.yaml:2"},
				{"mine/b/offering.yaml", 8, "shipped/a/offering.yaml:11"}}},
		"OrderOfFiles": {"Problems come in the order of the files, then of lines.", []compile.Source{
			{Name: "z", FS: folder(map[string]string{"a/offering.yaml": "{",
				"b/offering.yaml": spoil(map[int]string{2: "name: A", 1: "id: 5"})})},
			{Name: "a", FS: folder(map[string]string{"a/offering.yaml": "[]"})},
		}, []found{{"a/a/offering.yaml", 1, "must be an object"}, {"z/a/offering.yaml", 1, "not YAML"},
			{"z/b/offering.yaml", 1, "id"}, {"z/b/offering.yaml", 2, "name"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile.Load(known, tc.sources...)
			refuses(t, tc.reason, err, tc.want...)
		})
	}
}

// An unreadable file system lets nobody into one of its folders.
type unreadable struct {
	fs.FS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, u.name+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

// Other files beside an offering are its provider's, whatever their names; the folder of one
// offering is a source too.
func TestLoadLeavesOtherFiles(t *testing.T) {
	one := map[string]string{"offering.yaml": sound, "template.yaml": "Resources: [", "policies/deep/offering.yaml": "{"}
	within := map[string]string{}
	for name, text := range one {
		within["a/"+name] = text
	}
	for _, files := range []map[string]string{one, within} {
		c, err := load(files)
		if err != nil || len(c.Offerings()) != 1 {
			t.Errorf("want one offering, got %v", err)
		}
	}
}
