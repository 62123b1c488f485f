package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"sync"

	"github.com/longshore/longshore/internal/catalog/schema"
)

// A Catalog holds what a broker offers. It never changes once opened, so any number of requests may use it at once.
type Catalog struct {
	entries  []*entry
	services map[string]*entry // by the offering's id
	plans    map[string]*entry // by the plan's id
	files    map[string][]byte // by digest
	schemas  sync.Map          // holds *schema.Schema, by schemaKey
}

// An entry is an offering in the index of a compiled catalog.
type entry struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Plans    []string `json:"plans"` // the plans' ids
	Size     int      `json:"size"`  // the length of the offering's record in bytes; the records follow each other
	// offering decodes the record when it is first called.
	offering func() Offering
}

// An index is the part of a compiled catalog that Open reads.
type index struct {
	Entries []*entry `json:"entries"`
	Files   []file   `json:"files,omitempty"` // in order, after the records
	Sum     uint32   `json:"sum"`             // CRC-32 (IEEE) of all records and files
}

// A file is a file that a provider has kept, in the index.
type file struct {
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

// A record is an offering in a compiled catalog, including the broker's own members.
type record struct {
	Offering
	DashboardURL string       `json:"dashboard_url,omitempty"`
	Provider     string       `json:"provider"`
	Plans        []planRecord `json:"plans"`
}

type planRecord struct {
	Plan
	Unpublished
}

// header begins each compiled catalog; the number is the version of the format.
const header = "longshore catalog 1\n"

// Encode returns a compiled catalog: the header, a line with the index, and a record for each offering,
// then the files, which are named by their digests. The same offerings and files give the same bytes.
func Encode(offerings []Offering, files map[string][]byte) ([]byte, error) {
	var i index
	var records []byte
	for _, o := range offerings {
		r := record{Offering: o, DashboardURL: o.DashboardURL, Provider: o.Provider}
		e := &entry{ID: o.ID, Name: o.Name, Provider: o.Provider}
		for _, p := range o.Plans {
			e.Plans = append(e.Plans, p.ID)
			r.Plans = append(r.Plans, planRecord{p, p.Unpublished})
		}
		text, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encoding the offering %q: %w", o.Name, err)
		}
		e.Size = len(text)
		i.Entries, records = append(i.Entries, e), append(records, text...)
	}
	for _, digest := range slices.Sorted(maps.Keys(files)) {
		i.Files = append(i.Files, file{digest, len(files[digest])})
		records = append(records, files[digest]...)
	}
	i.Sum = crc32.ChecksumIEEE(records)
	text, _ := json.Marshal(i) // never fails: an index holds only texts and numbers
	return slices.Concat([]byte(header), text, []byte("\n"), records), nil
}

// Open opens a compiled catalog, which must not change afterwards. The error says whether the
// catalog is of another version or damaged.
func Open(compiled []byte) (*Catalog, error) {
	rest, ours := bytes.CutPrefix(compiled, []byte(header))
	if !ours {
		return nil, errors.New("not a compiled catalog of this version: build and deploy the functions together")
	}
	line, records, _ := bytes.Cut(rest, []byte("\n"))
	var i index
	if json.Unmarshal(line, &i) != nil || crc32.ChecksumIEEE(records) != i.Sum {
		return nil, errors.New("the compiled catalog is damaged: build and deploy the functions again")
	}
	c := newCatalog(map[string][]byte{})
	for _, e := range i.Entries {
		text := records[:e.Size]
		records = records[e.Size:]
		e.offering = sync.OnceValue(func() Offering {
			o, err := Decode(text)
			if err != nil { // the checksum proves that the record is unchanged
				panic(fmt.Sprintf("a record of the compiled catalog that is not damaged cannot be read: %v", err))
			}
			return o
		})
		c.add(e)
	}
	for _, f := range i.Files {
		c.files[f.Digest] = records[:f.Size:f.Size]
		records = records[f.Size:]
	}
	return c, nil
}

func newCatalog(files map[string][]byte) *Catalog {
	return &Catalog{services: map[string]*entry{}, plans: map[string]*entry{}, files: files}
}

// add appends an offering.
func (c *Catalog) add(e *entry) {
	c.entries, c.services[e.ID] = append(c.entries, e), e
	for _, id := range e.Plans {
		c.plans[id] = e
	}
}

// Decode decodes an offering with the broker's own members, which stand beside those of the
// specification. With an error it returns the part that could be decoded.
func Decode(text []byte) (Offering, error) {
	var r record
	err := json.Unmarshal(text, &r)
	o := r.Offering
	o.DashboardURL, o.Provider, o.Plans = r.DashboardURL, r.Provider, nil
	for _, q := range r.Plans {
		q.Plan.Unpublished = q.Unpublished
		o.Plans = append(o.Plans, q.Plan)
	}
	return o, err
}

// A schemaKey names one of a plan's schemas.
type schemaKey struct {
	verb Verb
	plan string
}

// schema returns a plan's schema, compiled when it is first asked for; nil allows everything.
func (c *Catalog) schema(v Verb, serviceID, planID string) (*schema.Schema, error) {
	_, plan, _ := c.Plan(serviceID, planID)
	p := plan.Schemas.For(v)
	if p == nil {
		return nil, nil
	}
	key := schemaKey{v, planID}
	if found, ok := c.schemas.Load(key); ok {
		return found.(*schema.Schema), nil
	}
	s, broken := schema.New(p.Parameters)
	if broken != nil {
		return nil, fmt.Errorf("the schema of plan %q in the compiled catalog cannot be used: %v", planID, broken)
	}
	c.schemas.Store(key, s)
	return s, nil
}
