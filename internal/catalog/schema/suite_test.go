package schema_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/internal/test/expect"
)

// drafts are what the suite calls them, and what a schema does.
var drafts = map[string]string{
	"draft4": "http://json-schema.org/draft-04/schema#", "draft6": "http://json-schema.org/draft-06/schema#",
	"draft7": "http://json-schema.org/draft-07/schema#", "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

// A trial is one value that a schema of the suite is asked about.
type trial struct {
	about string
	value json.RawMessage
	valid bool
}

func (t *trial) UnmarshalJSON(text []byte) error {
	t.value = json.RawMessage("null") // which leaves it as it is
	return json.Unmarshal(text, &[]any{&t.about, &t.value, &t.valid})
}

// The required tests of the community's own suite. A schema that refers to another
// document, or to what stands beside an $id, is refused: no plan may have one.
func TestSuite(t *testing.T) {
	file := expect.Get(os.Open("testdata/suite.jsonl.gz"))(t)
	defer file.Close()
	lines := bufio.NewScanner(expect.Get(gzip.NewReader(file))(t))
	lines.Buffer(nil, 1<<20)
	judged, refused := 0, 0
	for lines.Scan() {
		var draft, about string
		var text json.RawMessage
		var trials []trial
		expect.OK(t, json.Unmarshal(lines.Bytes(), &[]any{&draft, &about, &text, &trials}))
		members := map[string]json.RawMessage{}
		if json.Unmarshal(text, &members) != nil {
			continue // true or false, which no plan has
		}
		if members["$schema"] == nil {
			members["$schema"], _ = json.Marshal(drafts[draft])
		}
		text, _ = json.Marshal(members)
		s, broken := schema.New(text)
		if len(broken) > 0 {
			refused++
			if !strings.Contains(fmt.Sprint(broken), "another document") &&
				!strings.Contains(fmt.Sprint(broken), "id of their own") &&
				!strings.Contains(fmt.Sprint(broken), "published draft") {
				t.Errorf("%s %s: %v", draft, about, broken)
			}
			continue
		}
		for _, trial := range trials {
			v := expect.Get(schema.Parse(trial.value))(t)
			judged++
			expect.Same(t, fmt.Sprintf("%s %s, %s: valid", draft, about, trial.about), trial.valid, len(s.Judge(v, nil)) == 0)
		}
	}
	if judged < 4500 || refused > 200 {
		t.Errorf("%d values were judged, %d schemas refused", judged, refused)
	}
}
