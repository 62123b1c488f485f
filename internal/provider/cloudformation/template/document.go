package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/suggest"
	"github.com/longshore/longshore/internal/catalog/compile"
)

const (
	maxNodes = 100_000 // values in total: aliases can make a small file endless
	maxDepth = 60      // levels of nested values
)

// A document is the value of a file, decoded as from JSON, with the line of each value in it.
type document struct {
	file   string
	reader *checker // notes what is wrong with the value
	value  any
	lines  map[string]int // by JSON pointer
	nodes  int
	// text is the content of a JSON file, and ends says where its values end in it, by JSON
	// pointer.
	text []byte
	ends map[string]int64
}

// problem returns an error about the value at a pointer. If its line is unknown, the error has the
// line of the nearest value around it.
func (d *document) problem(at, what, mend string) *advice.Error {
	for at != "" && d.lines[at] == 0 {
		at = at[:strings.LastIndexByte(at, '/')]
	}
	return d.inLine(d.lines[at], what, mend)
}

// wrong notes a problem of the value at a pointer.
func (d *document) wrong(at, what, mend string) { d.reader.add(d.problem(at, what, mend)) }

// doubtful warns of the value at a pointer.
func (d *document) doubtful(at, what, mend string) { d.reader.warn(d.problem(at, what, mend)) }

func (d *document) inLine(line int, what, mend string) *advice.Error {
	return &advice.Error{File: d.file, Line: line, What: what, Remedy: mend}
}

// encoded returns the value of a document, or a part of it, as JSON.
func encoded(v any) []byte {
	text, _ := json.Marshal(v) // what was read from a file is JSON
	return text
}

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// slot returns a token of a JSON pointer.
func slot(name string) string { return "/" + escapes.Replace(name) }

// nth returns the pointer to an item of a list.
func nth(list string, i int) string { return list + "/" + strconv.Itoa(i) }

// read reads a YAML or JSON file. It turns short tags of CloudFormation into the functions they
// stand for.
func (d *document) read(folder fs.FS) error {
	text, err := compile.Read(folder, d.file)
	if at, is := errors.AsType[*fs.PathError](err); is {
		err = at.Err
	}
	switch {
	case err != nil:
		return d.inLine(0, "the file cannot be read: "+err.Error(), "put it beside the offering's file")
	case len(text) > compile.MaxFile:
		return d.problem("", fmt.Sprintf("the file is larger than %d bytes", compile.MaxFile), "shorten it")
	case path.Ext(d.file) == ".json":
		return d.json(bytes.TrimPrefix(text, []byte("\ufeff"))) // editors on Windows write a byte order mark
	}
	return d.yaml(text)
}

// json reads a JSON file. JSON needs a reader of its own, since it may contain tabs, which YAML
// refuses.
func (d *document) json(text []byte) error {
	d.text, d.ends = text, map[string]int64{}
	r := jsonReader{document: d, Decoder: json.NewDecoder(bytes.NewReader(text))}
	r.UseNumber()
	var err error
	if d.value, err = r.next("", 0); err == nil {
		if _, more := r.Token(); more == io.EOF {
			return nil
		}
		err = errors.New("something follows the value")
	}
	var told *advice.Error
	if errors.As(err, &told) {
		return told
	}
	return d.inLine(r.line(), "the file is not JSON: "+err.Error(), "correct this line or one next to it")
}

type jsonReader struct {
	*document
	*json.Decoder
}

// line returns the line of the token that was read last.
func (r *jsonReader) line() int {
	return 1 + bytes.Count(r.text[:r.InputOffset()], []byte("\n"))
}

func (r *jsonReader) next(at string, depth int) (any, error) {
	defer func() { r.ends[at] = r.InputOffset() }()
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	if r.lines[at] == 0 {
		r.lines[at] = r.line()
	}
	if err := r.visit(at, depth); err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := mapping{}
		for r.More() {
			key, err := r.Token()
			if err != nil {
				return nil, err
			}
			name, below := key.(string), at+slot(key.(string))
			r.lines[below] = r.line()
			if _, twice := object[name]; twice {
				return nil, r.problem(below, fmt.Sprintf("%q is given twice", name), "remove one of the two")
			}
			if object[name], err = r.next(below, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = r.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for r.More() {
			item, err := r.next(nth(at, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = r.Token()
		return list, err
	case nil:
		return nil, r.problem(at, "null is no value in such a file", "remove it, or give it a value")
	}
	return token, nil
}

func (d *document) visit(at string, depth int) error {
	d.nodes++
	switch {
	case d.nodes > maxNodes:
		return d.problem(at, fmt.Sprintf("the file expands to more than %d values", maxNodes),
			"use fewer aliases, and none that contains itself")
	case depth > maxDepth:
		return d.problem(at, fmt.Sprintf("the file nests more than %d values", maxDepth),
			"flatten it, and let no alias contain itself")
	}
	return nil
}

func (d *document) yaml(text []byte) error {
	root, more, err := compile.Document(text)
	switch {
	case errors.Is(err, io.EOF):
		return d.problem("", "the file is empty", "write it, or remove what names it")
	case err != nil:
		e := compile.NotYAML(err)
		e.File = d.file
		return e
	case more > 0:
		return d.inLine(more, "the file holds several documents", "leave one")
	}
	d.value, err = d.node(root, "", 0)
	return err
}

func (d *document) node(n *yaml.Node, at string, depth int) (any, error) {
	if d.lines[at] == 0 || at == "" {
		d.lines[at] = n.Line
	}
	if err := d.visit(at, depth); err != nil {
		return nil, err
	}
	if n.Kind == yaml.AliasNode {
		return d.node(n.Alias, at, depth+1)
	}
	if tag := n.Tag; strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") {
		return d.short(n, at, depth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.mapping(n, at, depth)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = d.node(item, nth(at, i), depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return d.scalar(n, at)
}

func (d *document) mapping(n *yaml.Node, at string, depth int) (any, error) {
	object := make(mapping, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return nil, d.inLine(key.Line, "a name is no text", "write it out: CloudFormation knows no other names, and no <<")
		}
		below := at + slot(key.Value)
		if _, twice := object[key.Value]; twice {
			return nil, d.inLine(key.Line, fmt.Sprintf("%q is given twice", key.Value), "remove one of the two")
		}
		d.lines[below] = key.Line
		var err error
		if object[key.Value], err = d.node(n.Content[i+1], below, depth+1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// scalar reads texts, numbers and booleans. A YAML number that JSON cannot write in the same way,
// such as an account id with a leading 0, is a text, as for CloudFormation.
func (d *document) scalar(n *yaml.Node, at string) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, d.problem(at, "there is no value", "remove it, or give it one: CloudFormation takes no null")
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return v, nil
		}
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value), nil
		}
	}
	return n.Value, nil
}

// tags lists the functions that may be written as a short tag.
var tags = []string{
	"!And", "!Base64", "!Cidr", "!Condition", "!Equals", "!FindInMap", "!GetAZs", "!GetAtt", "!If", "!ImportValue", "!Join",
	"!Not", "!Or", "!Ref", "!Select", "!Split", "!Sub", "!Transform",
}

// short turns a short tag, such as !Ref, into the function that it stands for.
func (d *document) short(n *yaml.Node, at string, depth int) (any, error) {
	name := n.Tag[1:]
	if !slices.Contains(tags, n.Tag) {
		return nil, d.inLine(n.Line, fmt.Sprintf("%q is no function of templates without transforms", n.Tag),
			suggest.Meant(n.Tag, tags, "write one of CloudFormation's, such as !Ref"))
	}
	long := "Fn::" + name
	if name == "Ref" || name == "Condition" {
		long = name
	}
	below, plain := at+slot(long), *n
	d.lines[below] = n.Line
	plain.Tag = "!!str" // only that of a scalar is read
	v, err := d.node(&plain, below, depth+1)
	if text, isText := v.(string); isText && name == "GetAtt" {
		resource, attribute, _ := strings.Cut(text, ".")
		v = []any{resource, attribute}
	}
	return mapping{long: v}, err
}
