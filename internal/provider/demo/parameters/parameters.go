// Package parameters keeps the demo's things in AWS SSM's Parameter Store,
// one parameter each, under one path. It owns that path, and the form of what
// is written there and in the parameters' tags. What a thing means is left to
// package demo.
//
// SSM can refuse to make what exists, but it has no other condition: see the
// comment on demo.Things for what that leaves open, and why it does no harm.
package parameters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
)

// PageSize is how many things are on a page of List at most: SSM gives no
// more.
const PageSize = 10

// maxValue is the most that a standard parameter holds, in bytes.
const maxValue = 4096

// API is what a Store calls of *ssm.Client.
type API interface {
	PutParameter(ctx context.Context, in *ssm.PutParameterInput, opts ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
	GetParameter(ctx context.Context, in *ssm.GetParameterInput, opts ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
	GetParametersByPath(ctx context.Context, in *ssm.GetParametersByPathInput, opts ...func(*ssm.Options)) (*ssm.GetParametersByPathOutput,
		error)
	DeleteParameter(ctx context.Context, in *ssm.DeleteParameterInput, opts ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error)
}

// A Store is a demo.Things over the parameters of one path.
type Store struct {
	client API
	path   string
}

var _ demo.Things = (*Store)(nil)

// New makes a store over the parameters right under the path, such as
// /longshore/demo. It calls nothing.
func New(client API, path string) (*Store, error) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	parts := strings.Split(path, "/")
	if len(parts) < 2 || len(parts) > 14 || len(path) > 700 || parts[0] != "" {
		return nil, fmt.Errorf("path %q of parameters is not of 1 to 13 parts, each after a slash", path)
	}
	for _, p := range parts[1:] {
		if p == "" || strings.Trim(p, letters) != "" {
			return nil, fmt.Errorf("path %q of parameters has a part that is not of letters, digits, '.', '-' and '_'", path)
		}
	}
	// SSM keeps these for itself.
	if first := strings.ToLower(parts[1]); strings.HasPrefix(first, "aws") || strings.HasPrefix(first, "ssm") {
		return nil, fmt.Errorf("path %q of parameters begins with aws or ssm", path)
	}
	return &Store{client: client, path: path}, nil
}

// Create implements demo.Things. It is one PutParameter.
func (s *Store) Create(ctx context.Context, t demo.Thing) error {
	_, err := s.put(ctx, t, false)
	return named("creating", t.Name, err)
}

// Get implements demo.Things. It is one GetParameter.
func (s *Store) Get(ctx context.Context, name string) (demo.Thing, error) {
	t, err := s.get(ctx, name)
	return t, named("reading", name, err)
}

// Replace implements demo.Things. It is a GetParameter and a PutParameter,
// whose answer tells how many writes came between the two.
func (s *Store) Replace(ctx context.Context, t demo.Thing) error {
	return named("replacing", t.Name, s.replace(ctx, t))
}

// Delete implements demo.Things. It is a GetParameter and a DeleteParameter.
func (s *Store) Delete(ctx context.Context, t demo.Thing) error {
	return named("deleting", t.Name, s.delete(ctx, t))
}

// List implements demo.Things. It is one GetParametersByPath; the cursor is
// SSM's.
func (s *Store) List(ctx context.Context, cursor string) ([]demo.Thing, string, error) {
	in := &ssm.GetParametersByPathInput{Path: &s.path, Recursive: aws.Bool(false), MaxResults: aws.Int32(PageSize)}
	if cursor != "" {
		in.NextToken = &cursor
	}
	out, err := s.client.GetParametersByPath(ctx, in)
	if err != nil {
		return nil, "", fmt.Errorf("listing things: %w", err)
	}
	page := make([]demo.Thing, 0, len(out.Parameters))
	for _, p := range out.Parameters {
		t, err := s.decode(p)
		if err != nil {
			return nil, "", fmt.Errorf("listing things: %w", err)
		}
		page = append(page, t)
	}
	return page, aws.ToString(out.NextToken), nil
}

func (s *Store) get(ctx context.Context, name string) (demo.Thing, error) {
	if err := checkName(name); err != nil {
		return demo.Thing{}, err
	}
	out, err := s.client.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(s.nameOf(name))})
	if isNotFound(err) {
		return demo.Thing{}, demo.ErrNotFound
	}
	if err != nil {
		return demo.Thing{}, err
	}
	if out.Parameter == nil {
		return demo.Thing{}, errors.New("SSM answers without a parameter")
	}
	return s.decode(*out.Parameter)
}

func (s *Store) replace(ctx context.Context, t demo.Thing) error {
	found, err := s.unchanged(ctx, t)
	if err == nil && !found {
		err = demo.ErrChanged
	}
	if err != nil {
		return err
	}
	version, err := s.put(ctx, t, true)
	if err != nil {
		return err
	}
	switch version {
	case versionOf(t.Revision) + 1:
		return nil
	case 1:
		// It went in between, and we have made it again, without its tags.
		_, err := s.client.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(s.nameOf(t.Name))})
		if err != nil && !isNotFound(err) {
			return fmt.Errorf("taking back what was gone: %w", err)
		}
	}
	return demo.ErrChanged
}

func (s *Store) delete(ctx context.Context, t demo.Thing) error {
	found, err := s.unchanged(ctx, t)
	if err != nil || !found {
		return err
	}
	_, err = s.client.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(s.nameOf(t.Name))})
	if isNotFound(err) {
		return nil
	}
	return err
}

// unchanged looks at the thing just before it is written to. It returns
// ErrChanged for one that is there and has another revision.
func (s *Store) unchanged(ctx context.Context, t demo.Thing) (found bool, err error) {
	now, err := s.get(ctx, t.Name)
	switch {
	case errors.Is(err, demo.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case now.Revision != t.Revision:
		return true, demo.ErrChanged
	}
	return true, nil
}

// put writes a thing and gives the parameter's version, which is 1 for one
// that was not there.
func (s *Store) put(ctx context.Context, t demo.Thing, overwrite bool) (version int64, err error) {
	if err := checkName(t.Name); err != nil {
		return 0, err
	}
	value, err := encode(t)
	if err != nil {
		return 0, err
	}
	in := &ssm.PutParameterInput{
		Name: aws.String(s.nameOf(t.Name)), Value: &value, Overwrite: &overwrite,
		Type: types.ParameterTypeString, Tier: types.ParameterTierStandard,
		Description: aws.String("A thing of the demo service"),
	}
	if !overwrite { // SSM takes tags for what is new only
		in.Tags = tagsOf(t.Tags)
	}
	out, err := s.client.PutParameter(ctx, in)
	var exists *types.ParameterAlreadyExists
	if errors.As(err, &exists) {
		return 0, demo.ErrExists
	}
	if err != nil {
		return 0, err
	}
	return out.Version, nil
}

func (s *Store) nameOf(name string) string { return s.path + "/" + name }

// A stored thing is one in the form of a parameter's value.
type stored struct {
	demo.Thing
	// Coded says that texts which may hold any characters are encoded: as they
	// are, they can take six bytes for one.
	Coded bool `json:"coded,omitempty"`
}

// coded is the thing with each such text as code makes it.
func (s stored) coded(code func(string) (string, error)) (stored, error) {
	texts := []*string{&s.Tags.Platform, &s.Tags.Instance, &s.Tags.Binding, &s.Plan}
	if s.Change != nil {
		change := *s.Change
		s.Change, texts = &change, append(texts, &change.Plan)
	}
	for _, text := range texts {
		var err error
		if *text, err = code(*text); err != nil {
			return s, err
		}
	}
	return s, nil
}

// encode leaves texts as they are where that fits, as it does for the ids of
// all platforms.
func encode(t demo.Thing) (string, error) {
	value, err := encodeStored(stored{Thing: t})
	if err != nil || len(value) <= maxValue {
		return value, err
	}
	s, _ := stored{Thing: t, Coded: true}.coded(func(text string) (string, error) { return provider.EncodeText(text), nil })
	if value, err = encodeStored(s); err == nil && len(value) > maxValue {
		err = fmt.Errorf("it takes %d bytes, and a parameter holds %d", len(value), maxValue)
	}
	return value, err
}

// encodeStored writes braces within text as escapes: SSM takes two of them for a
// reference to another parameter, and an id may hold any.
func encodeStored(s stored) (string, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding: %w", err)
	}
	var b strings.Builder
	inText := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\': // which occurs in text only
			b.Write(body[i : i+2])
			i++
		case c == '"':
			inText = !inText
			b.WriteByte(c)
		case inText && (c == '{' || c == '}'):
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

func (s *Store) decode(p types.Parameter) (demo.Thing, error) {
	var t stored
	parameter, value := aws.ToString(p.Name), aws.ToString(p.Value)
	err := json.Unmarshal([]byte(value), &t)
	if err == nil && t.Coded {
		t, err = t.coded(provider.DecodeText)
	}
	if err != nil {
		return demo.Thing{}, fmt.Errorf("parameter %q is damaged: %w", parameter, err)
	}
	if s.nameOf(t.Name) != parameter {
		return demo.Thing{}, fmt.Errorf("parameter %q is damaged: it holds thing %q", parameter, t.Name)
	}
	t.Revision = revisionOf(p.Version, value)
	return t.Thing, nil
}

// revisionOf is the version and a digest of the content: versions begin again
// with what is made again, so they are not enough.
func revisionOf(version int64, value string) string {
	sum := sha256.Sum256([]byte(value))
	return strconv.FormatInt(version, 10) + "-" + hex.EncodeToString(sum[:])
}

// versionOf reads the version in a revision; 0 if there is none.
func versionOf(revision string) int64 {
	text, _, _ := strings.Cut(revision, "-")
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

func isNotFound(err error) bool {
	var gone *types.ParameterNotFound
	return errors.As(err, &gone)
}

// checkName keeps names within the path.
func checkName(name string) error {
	if name == "" || len(name) > 200 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return errors.New("a name has 1 to 200 characters of a-z, 0-9 and -")
	}
	return nil
}

func named(doing, name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s thing %q: %w", doing, name, err)
	}
	return nil
}
