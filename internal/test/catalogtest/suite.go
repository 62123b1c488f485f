package catalogtest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
)

// A Group is a schema of the community's suite for JSON Schema, and the values that it is asked about.
type Group struct {
	Draft  string // the $schema of its draft
	About  string
	Schema json.RawMessage
	Trials []Trial
}

// A Trial is one value that a schema of the suite is asked about.
type Trial struct {
	About string
	Value json.RawMessage
	Valid bool
}

// UnmarshalJSON reads a list of the three.
func (t *Trial) UnmarshalJSON(text []byte) error {
	t.Value = json.RawMessage("null") // which leaves it as it is
	return json.Unmarshal(text, &[]any{&t.About, &t.Value, &t.Valid})
}

// drafts are what the suite calls them, and what a schema does.
var drafts = map[string]string{
	"draft4": "http://json-schema.org/draft-04/schema#", "draft6": "http://json-schema.org/draft-06/schema#",
	"draft7": "http://json-schema.org/draft-07/schema#", "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

// Suite reads the suite, which is kept beside package schema.
func Suite(t testing.TB, path string) (all []Group) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g Group
		if err := json.Unmarshal(lines.Bytes(), &[]any{&g.Draft, &g.About, &g.Schema, &g.Trials}); err != nil {
			t.Fatal(err)
		}
		g.Draft = drafts[g.Draft]
		all = append(all, g)
	}
	return all
}
