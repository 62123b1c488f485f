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
	jsonschema "github.com/longshore/longshore/internal/catalog/schema"
)

const (
	maxNodes = 100_000 // values in total: aliases can make a small file endless
	maxDepth = 60      // levels of nested values
)

// A document is the value of a file, decoded as from JSON, with the line of each value in it.
type document struct {
	file   string
	reader *checker // notes what is wrong with the file, and with the value
	value  any
	lines  map[string]int // by JSON pointer
	nodes  int
	// text is the content of a JSON file, and ends says where its values end in it, by JSON
	// pointer.
	text []byte
	ends map[string]int
	line int   // of the token of JSON that was read last
	seen int64 // where that token ends
}

// problem returns an error about the value at a pointer. If its line is unknown, the error has the
// line of the nearest value around it.
func (d *document) problem(at, what, mend string) *advice.Error {
	for at != "" && d.lines[at] == 0 {
		at = at[:strings.LastIndexByte(at, '/')]
	}
	return &advice.Error{File: d.file, Line: d.lines[at], What: what, Remedy: mend}
}

// wrong notes a problem of the value at a pointer.
func (d *document) wrong(at, what, mend string) { d.reader.add(d.problem(at, what, mend)) }

// doubtful warns of the value at a pointer.
func (d *document) doubtful(at, what, mend string) { d.reader.warn(d.problem(at, what, mend)) }

// inLine notes a problem of a line.
func (d *document) inLine(line int, what, mend string) {
	d.reader.add(&advice.Error{File: d.file, Line: line, What: what, Remedy: mend})
}

// encoded returns the value of a document, or a part of it, as JSON.
func encoded(v any) []byte {
	text, _ := json.Marshal(v) // what was read from a file is JSON
	return text
}

// slot returns a token of a JSON pointer.
func slot(name string) string { return "/" + jsonschema.Escape(name) }

// nth returns the pointer to an item of a list.
func nth(list string, i int) string { return list + "/" + strconv.Itoa(i) }

// read reads a YAML or JSON file. It turns short tags of CloudFormation into the functions they
// stand for. It notes all problems; the value is whole if there are none.
func (d *document) read(folder fs.FS) {
	text, err := compile.Read(folder, d.file)
	if at, is := errors.AsType[*fs.PathError](err); is {
		err = at.Err
	}
	switch {
	case err != nil:
		d.inLine(0, "the file cannot be read: "+err.Error(), "put it beside the offering's file")
	case len(text) > compile.MaxFile:
		d.wrong("", fmt.Sprintf("the file is larger than %d bytes", compile.MaxFile), "shorten it")
	case path.Ext(d.file) == ".json":
		d.json(bytes.TrimPrefix(text, []byte("\ufeff"))) // editors on Windows write a byte order mark
	default:
		d.yaml(text)
	}
}

// json reads a JSON file. JSON needs a reader of its own, since it may contain tabs, which YAML
// refuses.
func (d *document) json(text []byte) {
	var broken *json.SyntaxError
	if errors.As(json.Unmarshal(text, new(json.RawMessage)), &broken) {
		d.inLine(1+bytes.Count(text[:max(0, broken.Offset-1)], []byte("\n")), "the file is not JSON: "+broken.Error(),
			"correct this line or one next to it")
		return
	}
	d.text, d.line, d.seen = text, 1, 0
	from := json.NewDecoder(bytes.NewReader(text))
	from.UseNumber()
	d.value = d.node(d.next(from), "", 0)
}

// next returns the next value of a JSON file as a node of YAML, whose column says where the value
// ends.
func (d *document) next(from *json.Decoder) *yaml.Node {
	token, _ := from.Token() // the text is JSON
	end := from.InputOffset()
	d.line, d.seen = d.line+bytes.Count(d.text[d.seen:end], []byte("\n")), end
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: d.line}
	switch token := token.(type) {
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if token == '{' {
			n.Kind = yaml.MappingNode // names and values alternate in its content, as the tokens do
		}
		for from.More() {
			n.Content = append(n.Content, d.next(from))
		}
		_, _ = from.Token()
	case string:
		n.Tag, n.Value = "!!str", token
	case json.Number:
		n.Tag, n.Value = "!!float", token.String()
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(token)
	case nil:
		n.Tag = "!!null"
	}
	n.Column = int(from.InputOffset())
	return n
}

// visit reports whether one more value may be read. If not, reading of the file is given up.
func (d *document) visit(at string, depth int) bool {
	switch d.nodes++; {
	case d.nodes == maxNodes+1:
		d.wrong(at, fmt.Sprintf("the file expands to more than %d values", maxNodes),
			"use fewer aliases, and none that contains itself")
	case depth > maxDepth && d.nodes <= maxNodes:
		d.wrong(at, fmt.Sprintf("the file nests more than %d values", maxDepth),
			"flatten it, and let no alias contain itself")
		d.nodes = maxNodes + 1
	}
	return d.nodes <= maxNodes
}

func (d *document) yaml(text []byte) {
	root, more, err := compile.Document(text)
	switch {
	case errors.Is(err, io.EOF):
		d.wrong("", "the file is empty", "write it, or remove what names it")
	case err != nil:
		e := compile.NotYAML(err)
		d.inLine(e.Line, e.What, e.Remedy)
	case more > 0:
		d.inLine(more, "the file holds several documents", "leave one")
	default:
		d.value = d.node(root, "", 0)
	}
}

func (d *document) node(n *yaml.Node, at string, depth int) any {
	if d.lines[at] == 0 || at == "" {
		d.lines[at] = n.Line
	}
	d.ends[at] = n.Column
	switch {
	case !d.visit(at, depth):
		return nil
	case n.Kind == yaml.AliasNode:
		return d.node(n.Alias, at, depth+1)
	case strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!"):
		return d.short(n, at, depth)
	case n.Kind == yaml.MappingNode:
		return d.mapping(n, at, depth)
	case n.Kind == yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = d.node(item, nth(at, i), depth+1)
		}
		return list
	}
	return d.scalar(n, at)
}

func (d *document) mapping(n *yaml.Node, at string, depth int) any {
	object := make(mapping, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		below := at + slot(key.Value)
		switch _, twice := object[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			d.inLine(key.Line, "a name is no text", "write it out: CloudFormation knows no other names, and no <<")
		case twice:
			d.inLine(key.Line, fmt.Sprintf("%q is given twice", key.Value), "remove one of the two")
		default:
			d.lines[below] = key.Line
			object[key.Value] = d.node(n.Content[i+1], below, depth+1)
		}
	}
	return object
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// scalar reads texts, numbers and booleans. A YAML number that JSON cannot write in the same way,
// such as an account id with a leading 0, is a text, as for CloudFormation.
func (d *document) scalar(n *yaml.Node, at string) any {
	switch n.ShortTag() {
	case "!!null":
		if d.text != nil {
			d.wrong(at, "null is no value in such a file", "remove it, or give it a value")
		} else {
			d.wrong(at, "there is no value", "remove it, or give it one: CloudFormation takes no null")
		}
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return v
		}
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value)
		}
	}
	return n.Value
}

// tags lists the functions that may be written as a short tag.
var tags = []string{
	"!And", "!Base64", "!Cidr", "!Condition", "!Equals", "!FindInMap", "!GetAZs", "!GetAtt", "!If", "!ImportValue", "!Join",
	"!Not", "!Or", "!Ref", "!Select", "!Split", "!Sub", "!Transform",
}

// short turns a short tag, such as !Ref, into the function that it stands for.
func (d *document) short(n *yaml.Node, at string, depth int) any {
	name := n.Tag[1:]
	if !slices.Contains(tags, n.Tag) {
		d.inLine(n.Line, fmt.Sprintf("%q is no function of templates without transforms", n.Tag),
			suggest.Meant(n.Tag, tags, "write one of CloudFormation's, such as !Ref"))
	}
	long := "Fn::" + name
	if name == "Ref" || name == "Condition" {
		long = name
	}
	below, plain := at+slot(long), *n
	d.lines[below] = n.Line
	plain.Tag = "!!str" // only that of a scalar is read
	v := d.node(&plain, below, depth+1)
	if text, isText := v.(string); isText && name == "GetAtt" {
		resource, attribute, _ := strings.Cut(text, ".")
		v = []any{resource, attribute}
	}
	return mapping{long: v}
}
