package conformance

import (
	"cmp"
	flags "flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// Each case has its sentence, or says that there is none; what binds is quoted, and for no version by two sentences.
func TestEachCaseHasItsSource(t *testing.T) {
	used := map[string]bool{}
	for _, c := range Cases() {
		used[c.ID], used[c.Rule()] = true, true
		last := 0
		for _, s := range c.Sources {
			to := cmp.Or(s.To, NewestMinor)
			if s.Level == 0 || s.From < OldestMinor || to < s.From || s.From <= last {
				t.Errorf("%s: %d to %d at %s comes after 2.%d", c.ID, s.From, to, s.Level, last)
			}
			if last = to; s.Level != Recommended && (s.Sentence == "" || s.Section == "" || s.Document == "") {
				t.Errorf("%s binds at %s, and no sentence is given", c.ID, s.Level)
			}
		}
		if _, ok := c.At(NewestMinor); !ok {
			t.Errorf("%s has no source in the newest version", c.ID)
		}
	}
	for id := range requestSources {
		if _, twice := resourceSources[id]; twice {
			t.Errorf("%s has sources in two tables", id)
		}
	}
	for _, table := range []map[string][]Source{requestSources, resourceSources} {
		for id := range table {
			if !used[id] {
				t.Errorf("there is no case %s", id)
			}
		}
	}
}

// Promises of our own broker beyond the documents bind no other broker.
func TestWhatIsLeftOpenDoesNotBind(t *testing.T) {
	left := []string{
		"HDR-01", "HDR-02", "HDR-09", "BIND-17", "DEPR-09", "CONC-01", "GETI-04", "PROV-25/apart", "AUTH-04", "IDEM-08",
		"GETI-10/integer", "ERR-02/description",
	}
	for _, c := range Cases() {
		if (slices.Contains(left, c.ID) || slices.Contains(left, c.Rule())) && c.Level >= Should {
			t.Errorf("%s is asked at %s: %v", c.ID, c.Level, c.Sources)
		}
	}
}

// A level is that of the version that is spoken.
func TestLevelsFollowTheVersion(t *testing.T) {
	for _, want := range []struct {
		id    string
		minor int
		level Level
	}{
		{"PROV-07", 9, May}, {"PROV-07", 12, Must}, {"PROV-07", 13, Must}, {"PROV-07", 14, Should}, {"PROV-07", 17, Should},
		{"ERR-01", 9, Must}, {"ERR-01", 13, Must}, {"ERR-01", 14, Recommended}, {"PROV-08/space", 11, Should},
		{"PROV-08/space", 12, Must}, {"INP-01/provision-brace", 12, Recommended}, {"INP-01/provision-brace", 13, Must},
		{"LOP-09", 16, Must}, {"LOP-02", 15, Recommended}, {"LOP-02", 16, Should},
		{"PROV-08/2.9", 17, Should}, // it speaks 2.9
	} {
		n := slices.IndexFunc(Cases(), func(c Case) bool { return c.ID == want.id })
		if s, ok := Cases()[n].At(want.minor); !ok || s.Level != want.level {
			t.Errorf("%s in 2.%d is %s, want %s", want.id, want.minor, s.Level, want.level)
		}
	}
}

// A secret is found as a whole, and only if it can be told from other text.
func TestSecretsAreWholeWords(t *testing.T) {
	for _, c := range []struct {
		text, secret string
		found        bool
	}{
		{"the password is wrong", "pass", false}, {"pass is wrong", "pass", true}, {"user:pass@host", "pass", true},
		{"pass", "pass", true}, {"k7-long-secret", "k7-long-secret", true}, {"xk7-long-secret", "k7-long-secret", false},
		{"xk7-long-secret k7-long-secret.", "k7-long-secret", true}, {"äpass", "pass", false},
	} {
		expect.Same(t, c.secret+" in "+c.text, c.found, tokenIn(c.text, c.secret))
	}
	for secret, want := range map[string]bool{
		"pass": false, "password": false, "Platform": false, "hunter2": false, "k7-long!": true,
		"correcthorsebatterystaple": true,
	} {
		expect.Same(t, secret+" can be told", want, tellable(secret))
	}
}

// Half a secret is secret, too, and so is what stands beside a name that is hidden.
func TestSecretsAreHiddenWhole(t *testing.T) {
	const secret = "k7-long-secret"
	r := expect.Get(newRunner(Target{URL: "http://broker.example.com", Username: "platform", Password: secret}, Options{}))(t)
	for _, c := range []object{{"host": "db.example.com"}, {"uri": "postgres://app:t4-only-in-the-uri@db.example.com/orders"}} {
		r.secrets.learn(response{body: object{"credentials": c}})
	}
	for said, want := range map[string]string{
		"as " + secret: "as (left out)",
		"at postgres://app:t4-only-in-the-uri@db.example.com/orders": "at (left out)",
		"Basic cGxhdGZvcm06azctbG9uZy1zZWNyZXQ=":                     "Basic (left out)",
	} {
		expect.Same(t, said, want, r.secrets.hide(said))
	}
	for n := range 310 {
		said := strings.Repeat("x", n) + " " + secret
		for _, a := range []response{{raw: []byte(said)}, {body: object{"description": said}}} {
			if a.secrets = &r.secrets; strings.Contains(a.String(), secret[:3]) {
				t.Fatalf("a part of a secret is shown: %s", a)
			}
		}
	}
}

// Instants are compared as times: their fractions may have any number of digits.
func TestInstantsAreNoTexts(t *testing.T) {
	for name, c := range map[string]struct {
		reason        string
		renew, expire string
		well          bool
	}{
		"SameInstant": {"one text is not the other, and the time is the same", "2030-01-31T23:59:59.5Z",
			"2030-01-31T23:59:59.50Z", true},
		"LaterDigits": {"a longer fraction is not a later time", "2030-01-31T23:59:59.1Z", "2030-01-31T23:59:59.10Z", true},
		"Before":      {"a renewal comes before the end", "2030-01-31T23:59:59.0Z", "2030-02-01T00:00:00.0Z", true},
		"After":       {"a renewal after the end is found", "2030-01-31T23:59:59.51Z", "2030-01-31T23:59:59.5Z", false},
		"NoSuchDay":   {"what is no time is found", "2030-02-31T23:59:59.0Z", "2030-03-31T23:59:59.0Z", false},
		"NoFraction":  {"the pattern has a fraction", "2030-01-31T23:59:59Z", "2030-01-31T23:59:59.0Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			grant := object{"metadata": object{"renew_before": c.renew, "expires_at": c.expire}}
			wanted, _ := expiry(nil, response{body: grant})
			expect.Same(t, c.reason+": "+wanted, c.well, wanted == "")
		})
	}
}

// A case that wants nothing made is asked of a plan that cannot be provisioned too, unless only trying shows what it is about.
func TestWhatNeedsNoInstanceNeedsNoPlanThatWorks(t *testing.T) {
	learned := []string{updatable.what, asyncOnly.what, asynchronous.what, bindAsync.what, facade.what}
	s := &service{id: "s", name: "s", bindable: true, instancesRetrievable: true, bindingsRetrievable: true}
	p := &plan{service: s, id: "p", name: "p", bindable: true, trouble: "no room", maintenance: "1.0.0",
		schemas: object{"service_instance": object{"create": object{"parameters": object{"additionalProperties": false}}}}}
	k := &Knowledge{services: []*service{s}}
	for range 2 {
		other := *p
		other.knowledge = k
		s.plans, k.plans = append(s.plans, &other), append(k.plans, &other)
	}
	k.services = append(k.services, &service{id: "t", name: "t", plans: k.plans})
	asked := 0
	for _, c := range Cases() {
		refusals := !slices.ContainsFunc(c.steps, func(s step) bool {
			asks := s.ask.method == http.MethodGet || s.ask.method == http.MethodDelete
			return !asks && (len(s.want.status) == 0 || slices.Min(s.want.status) < 400)
		})
		if c.given.reach != nil || len(c.steps) == 0 || !refusals || slices.ContainsFunc(c.needs,
			func(n need) bool { return slices.Contains(learned, n.what) || n.what == unmaintained.what }) {
			continue
		}
		asked++
		if plans, reason := k.choose(c); reason != "" || len(c.needs) > 0 && len(plans) == 0 {
			t.Errorf("%s is not asked: %s", c.ID, reason)
		}
	}
	expect.Least(t, "cases that need no instance", 100, asked)
}

var documents = flags.String("documents", "",
	"a folder with the documents of the versions, 2.9.md to 2.17.md: compare the sentences with them, and write what stands in "+
		"them")

// proved lists the sentences that were found verbatim in the version's document. The documents are not part of this repository.
const proved = "testdata/sentences.txt"

// Markup that a sentence is given without.
var (
	links = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	codes = regexp.MustCompile(`</?(tt|code)>`)
	tags  = regexp.MustCompile(`<[^>]*>`)
)

func plainText(markdown string) string {
	t := links.ReplaceAllString(markdown, "$1")
	t = tags.ReplaceAllString(codes.ReplaceAllString(t, "`"), " ")
	t = strings.NewReplacer(`\_`, "_", "&nbsp;", " ").Replace(t)
	return strings.Join(strings.Fields(t), " ")
}

// printed are lines "version, tab, text" for each sentence and section's title that some case prints in a run of some version.
func printed() []string {
	lines := map[string]bool{}
	add := func(s Source, minor int) {
		if s.Sentence == "" || !strings.HasPrefix(s.Document, osb+" v") && !strings.HasPrefix(s.Document, cf+" v") {
			return // of no version, or of another document
		}
		lines[fmt.Sprintf("2.%d\t%s", minor, s.Sentence)] = true
	}
	for _, c := range Cases() {
		for minor := OldestMinor; minor <= NewestMinor; minor++ {
			if s, ok := c.At(minor); ok {
				add(s, cmp.Or(c.speaks, minor))
			}
		}
	}
	for minor := OldestMinor; minor <= NewestMinor; minor++ {
		for _, h := range (&Knowledge{unguarded: true}).hazards(minor) {
			add(h.Source, minor)
		}
	}
	return slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return strings.Compare(after(a)+a, after(b)+b) })
}

func after(line string) string { return line[strings.Index(line, "\t")+1:] }

// Each sentence that is printed for a version stands verbatim in the version's own document.
func TestSentencesStandInTheirDocuments(t *testing.T) {
	lines := printed()
	if *documents != "" {
		text := map[string]string{}
		for minor := OldestMinor; minor <= NewestMinor; minor++ {
			version := fmt.Sprintf("2.%d", minor)
			text[version] = plainText(string(expect.Get(os.ReadFile(filepath.Join(*documents, version+".md")))(t)))
		}
		for _, line := range lines {
			version, sentence, _ := strings.Cut(line, "\t")
			if !strings.Contains(text[version], plainText(sentence)) {
				t.Errorf("version %s does not say: %s", version, sentence)
			}
		}
		if !t.Failed() {
			expect.OK(t, os.WriteFile(proved, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
		}
		return
	}
	known := strings.Split(strings.TrimSpace(string(expect.Get(os.ReadFile(proved))(t))), "\n")
	for _, line := range lines {
		if !slices.Contains(known, line) {
			t.Errorf("%q was not compared with the document of its version: see the flag -documents", line)
		}
	}
	for _, line := range known {
		if !slices.Contains(lines, line) {
			t.Errorf("%q is printed no more", line)
		}
	}
	expect.Least(t, "sentences that are printed", 500, len(lines))
}
