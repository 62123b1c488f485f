package conformance

import (
	"fmt"
	"strings"
)

// A Source is what decides a case: a sentence, the minor versions of the API for which it holds,
// and how strictly it asks. The level is the sentence's own word; a type, a valid value or a status
// that a table states without such a word counts as MUST. Rules that no document asks for are
// Recommended, also where a sentence expressly leaves the matter open; that sentence is then given.
type Source struct {
	Level    Level
	From, To int // a zero To is the newest version
	Document string
	Section  string
	// Sentence has the wording of the newest version for which it holds, without links, or the
	// wording of the version that At was asked for; empty if no document speaks of the matter.
	Sentence string
}

// The documents.
const (
	osb     = "Open Service Broker API"
	cf      = "Cloud Foundry Service Broker API"
	http11  = "RFC 9110, HTTP Semantics"
	pattern = "Asynchronous Request-Reply pattern"
)

// holds reports whether the sentence holds for a minor version.
func (s Source) holds(minor int) bool { return s.From <= minor && (s.To == 0 || minor <= s.To) }

// String returns the source in one line.
func (s Source) String() string {
	if s.Sentence == "" {
		return "no document asks for it"
	}
	versions := fmt.Sprintf("2.%d to 2.%d", s.From, s.To)
	if s.To == 0 {
		versions = fmt.Sprintf("since 2.%d", s.From)
	}
	left := ""
	if s.Level == Recommended {
		left = ", which leaves it open"
	}
	return fmt.Sprintf("%s, %s (%s)%s: “%s”", s.Document, s.Section, versions, left, s.Sentence)
}

// ending limits a source to the versions up to minor.
func (s Source) ending(minor int) Source {
	s.To = minor
	return s
}

// from moves the first version of each source that begins earlier, for cases about something that
// is newer than the sentence.
func from(minor int, of ...Source) []Source {
	var out []Source
	for _, s := range of {
		if s.To == 0 || s.To >= minor {
			s.From = max(s.From, minor)
			out = append(out, s)
		}
	}
	return out
}

// at keeps only the sources that hold for one minor version, for cases that speak it.
func at(minor int, of ...Source) []Source {
	var out []Source
	for _, s := range of {
		if s.holds(minor) {
			s.From, s.To = minor, minor
			out = append(out, s)
		}
	}
	return out
}

func must(minor int, section, sentence string) Source {
	return Source{Must, minor, 0, osb, section, sentence}
}

func should(minor int, section, sentence string) Source {
	return Source{Should, minor, 0, osb, section, sentence}
}

// before returns a source in the document of 2.9, whose meaning is the same up to 2.11.
func before(l Level, section, sentence string) Source {
	return Source{l, OldestMinor, 11, cf, section, sentence}
}

// open returns a source that leaves something to the broker.
func open(minor int, section, sentence string) Source {
	return Source{Recommended, minor, 0, osb, section, sentence}
}

// unsaid returns the source of a rule that no document speaks of.
func unsaid(minor int) []Source { return []Source{{Level: Recommended, From: minor}} }

func all(of ...Source) []Source { return of }

// sourcesOf returns the sources for the id of a case, or else those for its rule.
func sourcesOf(id string) []Source {
	rule, _, _ := strings.Cut(id, "/")
	for _, key := range []string{id, rule} {
		for _, table := range []map[string][]Source{requestSources, resourceSources} {
			if s, ok := table[key]; ok {
				return s
			}
		}
	}
	return nil
}

// At returns the source that decides the case in a run of a minor version. It returns false if that
// version does not have the rule.
func (c Case) At(minor int) (Source, bool) {
	if minor < c.Since {
		return Source{}, false
	}
	if c.speaks != 0 {
		minor = c.speaks
	}
	for _, s := range c.Sources {
		if s.holds(minor) {
			return s.in(minor), true
		}
	}
	return Source{}, false
}
