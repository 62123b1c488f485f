package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/catalog"
)

func TestLoadSources(t *testing.T) {
	other := strings.NewReplacer("offering-1", "offering-9", "plan-1", "plan-8", "plan-2", "plan-9", "name: one", "name: nine").Replace(sound)
	client := "dashboard_client: {id: client, secret: s3cret, redirect_uri: \"https://example.com\"}\n"

	cases := map[string]struct {
		reason  string
		sources []catalog.Source
		want    []found
	}{
		"None": {
			reason: "A broker without a folder has nothing to offer.",
			want:   []found{{"offerings", 0, "no folder"}},
		},
		"EmptyFolder": {
			reason: "An operator who names a folder means it to hold something; each is judged by itself.",
			sources: []catalog.Source{
				{Name: "shipped", FS: folder(map[string]string{"a.yaml": sound})},
				{Name: "mine", FS: folder(map[string]string{"README.md": "", ".hidden.yaml": "{", "sub/b.yaml": other})},
			},
			want: []found{{"mine", 0, "no offering"}},
		},
		"TooLargeFile": {
			reason:  "A file beyond any real one is not read into memory.",
			sources: []catalog.Source{{Name: "mine", FS: folder(map[string]string{"a.yml": strings.Repeat("#", 1<<20+1)})}},
			want:    []found{{"mine/a.yml", 1, "larger"}},
		},
		"UniqueAcrossSources": {
			reason: "CAT-04: ids, offering names and client ids are unique over all files; the later file is at fault.",
			sources: []catalog.Source{
				{Name: "shipped", FS: folder(map[string]string{"a.yaml": sound + client})},
				{Name: "mine", FS: folder(map[string]string{
					"a.yaml": strings.Replace(other, "offering-9", "offering-1", 1) + client,
					"b.yaml": strings.NewReplacer("offering-9", "plan-1", "plan-8", "plan-2", "plan-9", "plan-7", "name: nine", "name: one").Replace(other),
				})},
			},
			want: []found{
				{"mine/a.yaml", 1, "shipped/a.yaml:1"}, {"mine/a.yaml", 14, "shipped/a.yaml:14"},
				{"mine/b.yaml", 1, "shipped/a.yaml:8"}, {"mine/b.yaml", 2, "shipped/a.yaml:2"}, {"mine/b.yaml", 8, "shipped/a.yaml:11"},
			},
		},
		"OrderOfSources": {
			reason: "Problems come in the order of the sources, then of files, then of lines.",
			sources: []catalog.Source{
				{Name: "z", FS: folder(map[string]string{"b.yml": spoil(map[int]string{2: "name: A", 1: "id: 5"}), "a.yaml": "{"})},
				{Name: "a", FS: folder(map[string]string{"a.yaml": "[]"})},
			},
			want: []found{{"z/a.yaml", 1, "not YAML"}, {"z/b.yml", 1, "id"}, {"z/b.yml", 2, "name"}, {"a/a.yaml", 1, "mapping"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := catalog.Load(providers, tc.sources...)
			if diff := cmp.Diff(tc.want, problemsOf(t, tc.reason, err, tc.want)); diff != "" {
				t.Errorf("%s\nLoad(...): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
