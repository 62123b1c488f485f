package compile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/internal/base/advice"
)

// MaxFile bounds a file of an offering, in bytes. It is far above any real file, and low enough to
// read the file whole.
const MaxFile = 1 << 20

// Read reads a file of an offering: of one that is longer than MaxFile, one byte more.
func Read(folder fs.FS, name string) ([]byte, error) {
	f, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}

// Document decodes the one document of a YAML file. If a second one begins, more is its line. If
// there is none, the error is io.EOF. If only what follows the document is no YAML, the document is
// returned beside the error.
func Document(text []byte) (root *yaml.Node, more int, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, next yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return nil, 0, err
	}
	if err = decoder.Decode(&next); errors.Is(err, io.EOF) {
		err = nil
	}
	return document.Content[0], next.Line, err // each document has one value
}

var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

// NotYAML returns an error of the YAML library, whose text holds the line, as advice.
func NotYAML(err error) *advice.Error {
	what, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		what = what[len(m[0]):]
	}
	return &advice.Error{Line: line, What: "the file is not YAML: " + what,
		Remedy: "correct this line or one next to it; indent with spaces, quote text that holds \": \" or \"#\""}
}
