package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// The required tests of the community's own suite. A schema that refers to another
// document, or to what stands beside an $id, is refused: no plan may have one.
func TestSuite(t *testing.T) {
	judged, refused := 0, 0
	for _, of := range catalogtest.Suite(t, "testdata/suite.jsonl.gz") {
		members := map[string]json.RawMessage{}
		if json.Unmarshal(of.Schema, &members) != nil {
			continue // true or false, which no plan has
		}
		if members["$schema"] == nil {
			members["$schema"], _ = json.Marshal(of.Draft)
		}
		text, _ := json.Marshal(members)
		s, broken := schema.New(text)
		if len(broken) > 0 {
			refused++
			if !strings.Contains(fmt.Sprint(broken), "another document") &&
				!strings.Contains(fmt.Sprint(broken), "id of their own") &&
				!strings.Contains(fmt.Sprint(broken), "published draft") {
				t.Errorf("%s %s: %v", of.Draft, of.About, broken)
			}
			continue
		}
		for _, trial := range of.Trials {
			v := expect.Get(schema.Parse(trial.Value))(t)
			judged++
			at := fmt.Sprintf("%s %s, %s: valid", of.Draft, of.About, trial.About)
			expect.Same(t, at, trial.Valid, len(s.Judge(v, nil)) == 0)
		}
	}
	if judged < 4500 || refused > 200 {
		t.Errorf("%d values were judged, %d schemas refused", judged, refused)
	}
}
