package parameters_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/parameters"
	"github.com/longshore/longshore/internal/test/demotest"
	"github.com/longshore/longshore/internal/test/emulator"
)

func newClient(t testing.TB) *ssm.Client {
	t.Helper()
	return ssm.NewFromConfig(emulator.Config(t))
}

// newPath is a path of its own, which is empty again when the test ends.
func newPath(t testing.TB) string {
	t.Helper()
	client, path := newClient(t), "/"+emulator.Name("longshore-test")+"/demo"
	t.Cleanup(func() {
		for {
			out, err := client.GetParametersByPath(context.Background(), &ssm.GetParametersByPathInput{Path: &path})
			if err != nil {
				t.Errorf("cleaning up: %v", err)
			}
			if err != nil || len(out.Parameters) == 0 {
				return
			}
			for _, p := range out.Parameters {
				if _, err := client.DeleteParameter(context.Background(), &ssm.DeleteParameterInput{Name: p.Name}); err != nil {
					t.Errorf("cleaning up: %v", err)
					return
				}
			}
		}
	})
	return path
}

func openOver(t testing.TB, client parameters.API, path string) *parameters.Store {
	t.Helper()
	s, err := parameters.New(client, path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t testing.TB, path string) *parameters.Store {
	t.Helper()
	return openOver(t, newClient(t), path)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// PINs cannot be guessed from what lies in SSM.
func TestParametersCannotBeGuessed(t *testing.T) {
	demotest.RunGuesses(t, func(t *testing.T) (demo.Things, func() string) {
		path := newPath(t)
		return open(t, path), func() string {
			var out strings.Builder
			client := newClient(t)
			page, err := client.GetParametersByPath(t.Context(), &ssm.GetParametersByPathInput{Path: &path})
			must(t, err)
			if page.NextToken != nil {
				t.Fatal("there is more than a page of parameters")
			}
			slices.SortFunc(page.Parameters, func(a, b types.Parameter) int { return strings.Compare(*a.Name, *b.Name) })
			for _, p := range page.Parameters {
				tags, err := client.ListTagsForResource(t.Context(),
					&ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: p.Name})
				must(t, err)
				slices.SortFunc(tags.TagList, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
				fmt.Fprintf(&out, "%s %s", strings.TrimPrefix(*p.Name, path), *p.Value)
				for _, tag := range tags.TagList {
					fmt.Fprintf(&out, " %s=%s", *tag.Key, *tag.Value)
				}
				out.WriteByte('\n')
			}
			return out.String()
		}
	})
}

// What earlier programs wrote is read, updated and deleted; an update leaves
// nothing of the digests that it held.
func TestThingsWithADigest(t *testing.T) {
	ctx, path := t.Context(), newPath(t)
	s, client := open(t, path), newClient(t)
	must(t, s.Create(ctx, demotest.Whole("a")))
	name := path + "/a"
	value := func() string {
		out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
		must(t, err)
		return *out.Parameter.Value
	}
	old := strings.NewReplacer(`"plan":"plan"`, `"plan":"plan","parameters":"5c1f"`, `"plan":"plan-2"`,
		`"plan":"plan-2","parameters":"5c1f"`).Replace(value())
	if strings.Count(old, "5c1f") != 2 {
		t.Fatal(old)
	}
	_, err := client.PutParameter(ctx,
		&ssm.PutParameterInput{Name: &name, Value: &old, Type: types.ParameterTypeString, Overwrite: aws.Bool(true)})
	must(t, err)
	read, err := s.Get(ctx, "a")
	must(t, err)
	want := demotest.Whole("a")
	want.Revision = read.Revision
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("thing (-written +read):\n%s", diff)
	}
	must(t, s.Replace(ctx, read))
	if strings.Contains(value(), "5c1f") {
		t.Errorf("a digest is left: %s", value())
	}
	read, err = s.Get(ctx, "a")
	must(t, err)
	must(t, s.Delete(ctx, read))
}

func TestThings(t *testing.T) {
	ctx, path := t.Context(), newPath(t)
	s := open(t, path)
	_, err := s.Get(ctx, "a")
	isError(t, "get of what is not there", err, demo.ErrNotFound)
	must(t, s.Create(ctx, demotest.Whole("a")))
	other := demotest.Whole("a")
	other.Plan = "other"
	isError(t, "create of what is there", s.Create(ctx, other), demo.ErrExists)
	read, err := open(t, path).Get(ctx, "a")
	must(t, err)
	if read.Revision == "" {
		t.Error("the thing was read without a revision")
	}
	want := demotest.Whole("a")
	want.Revision = read.Revision
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("thing (-created +read):\n%s", diff)
	}

	next := read
	next.Plan = "plan-3"
	must(t, s.Replace(ctx, next))
	isError(t, "replace of what has changed", s.Replace(ctx, next), demo.ErrChanged)
	isError(t, "delete of what has changed", s.Delete(ctx, read), demo.ErrChanged)
	isError(t, "replace of what is not read", s.Replace(ctx, demotest.Whole("a")), demo.ErrChanged)
	isError(t, "replace of what is absent", s.Replace(ctx, demotest.Whole("b")), demo.ErrChanged)
	read, err = s.Get(ctx, "a")
	must(t, err)
	if read.Plan != "plan-3" {
		t.Errorf("plan %q, want %q", read.Plan, "plan-3")
	}
	must(t, s.Delete(ctx, read))
	must(t, s.Delete(ctx, read)) // gone already
	isError(t, "replace of what is gone", s.Replace(ctx, read), demo.ErrChanged)

	// What is made again begins at the first version, as the one before did.
	again := demotest.Whole("a")
	again.Tags.Incarnation = "another"
	must(t, s.Create(ctx, demotest.Whole("a")))
	first, err := s.Get(ctx, "a")
	must(t, err)
	must(t, s.Delete(ctx, first))
	must(t, s.Create(ctx, again))
	isError(t, "delete of what was made again", s.Delete(ctx, first), demo.ErrChanged)
	isError(t, "replace of what was made again", s.Replace(ctx, first), demo.ErrChanged)
}

// The parameter is as an operator finds it.
func TestParameter(t *testing.T) {
	ctx, path, client := t.Context(), newPath(t), newClient(t)
	thing := demotest.Whole("a")
	thing.Tags.Instance = "weird {{ssm:other}} #1"
	s := openOver(t, client, path)
	must(t, s.Create(ctx, thing))
	name := path + "/a"
	out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	must(t, err)
	if p := out.Parameter; p.Type != types.ParameterTypeString || strings.Contains(*p.Value, "{{") ||
		strings.Contains(*p.Value, "ssm:other}}") {
		t.Errorf("parameter of type %s holds %s", p.Type, *p.Value)
	}
	tags := func() map[string]string {
		t.Helper()
		out, err := client.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{
			ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: &name,
		})
		must(t, err)
		tags := map[string]string{}
		for _, tag := range out.TagList {
			tags[*tag.Key] = *tag.Value
		}
		return tags
	}
	want := map[string]string{
		"longshore:platform": "platform", "longshore:instance": "=d2VpcmQge3tzc206b3RoZXJ9fSAjMQ",
		"longshore:binding": "binding", "longshore:incarnation": "incarnation",
	}
	if d := cmp.Diff(want, tags()); d != "" {
		t.Errorf("tags (-want +got):\n%s", d)
	}
	read, err := s.Get(ctx, "a")
	must(t, err)
	if d := cmp.Diff(thing.Tags, read.Tags); d != "" {
		t.Errorf("tags of the thing (-created +read):\n%s", d)
	}
	must(t, s.Replace(ctx, read))
	if d := cmp.Diff(want, tags()); d != "" {
		t.Errorf("tags after replacing (-want +got):\n%s", d)
	}
	ofInstance := demotest.Whole("b")
	ofInstance.Tags.Binding = ""
	must(t, s.Create(ctx, ofInstance))
	name = path + "/b"
	if _, ok := tags()["longshore:binding"]; ok {
		t.Error("what belongs to an instance is tagged with a binding")
	}
}

func TestPaths(t *testing.T) {
	for _, path := range []string{
		"", "/", "a", "/a/", "//a", "/a b", "/a//b", "/aws/x", "/SSMx", "/ä", "/" + strings.Repeat("a", 700), strings.Repeat("/a", 14),
	} {
		if _, err := parameters.New(nil, path); err == nil {
			t.Errorf("path %q was taken", path)
		}
	}
	for _, path := range []string{"/longshore/demo", "/a", "/A.b_c-9", strings.Repeat("/a", 13)} {
		if _, err := parameters.New(nil, path); err != nil {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

func TestNames(t *testing.T) {
	s := openOver(t, nil, "/longshore/demo") // nothing is called
	for _, name := range []string{"", "../a", "a/b", "A", "a.b", "a:1", strings.Repeat("a", 201)} {
		thing := demotest.Whole("a")
		thing.Name = name
		_, err := s.Get(t.Context(), name)
		for verb, err := range map[string]error{
			"get": err, "create": s.Create(t.Context(), thing), "replace": s.Replace(t.Context(), thing), "delete": s.Delete(t.Context(), thing),
		} {
			if err == nil || errors.Is(err, demo.ErrNotFound) || errors.Is(err, demo.ErrChanged) {
				t.Errorf("%s of name %q: %v, want a refusal", verb, name, err)
			}
		}
	}
}

func TestList(t *testing.T) {
	ctx, path := t.Context(), newPath(t)
	s := open(t, path)
	want := map[string]bool{}
	for n := range 2*parameters.PageSize + 1 {
		name := fmt.Sprintf("thing-%03d", n)
		must(t, s.Create(ctx, demotest.Whole(name)))
		want[name] = true
	}
	// What stands beside the path, or further down, is not of it.
	for _, other := range []string{path + "x", path + "/a"} {
		must(t, openOver(t, newClient(t), other).Create(ctx, demotest.Whole("other")))
	}
	got := map[string]bool{}
	var sizes []int
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := s.List(ctx, cursor)
		must(t, err)
		for _, thing := range page {
			if got[thing.Name] || thing.Revision == "" {
				t.Errorf("thing %q is listed twice or without a revision", thing.Name)
			}
			got[thing.Name] = true
		}
		sizes = append(sizes, len(page))
		cursor = next
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{parameters.PageSize, parameters.PageSize, 1}, sizes); d != "" {
		t.Errorf("sizes of pages (-want +got):\n%s", d)
	}
	for _, other := range []string{path + "x", path + "/a"} {
		thing, err := open(t, other).Get(ctx, "other")
		must(t, err)
		must(t, open(t, other).Delete(ctx, thing))
	}
}

func TestDamagedParameters(t *testing.T) {
	for name, body := range map[string]string{
		"NoJSON": "hello", "Cut": `{"name":"a","tags":{"plat`, "Null": "null", "Array": "[1]", "WrongType": `{"name":"a","past":7}`,
		"Renamed": `{"name":"b"}`, "Trailing": `{"name":"a"}{"name":"a"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path, client := newPath(t), newClient(t)
			parameter := path + "/a"
			_, err := client.PutParameter(t.Context(), &ssm.PutParameterInput{Name: &parameter, Value: &body, Type: types.ParameterTypeString})
			must(t, err)
			s := openOver(t, client, path)
			_, get := s.Get(t.Context(), "a")
			_, _, list := s.List(t.Context(), "")
			for verb, err := range map[string]error{
				"get": get, "list": list, "replace": s.Replace(t.Context(), demotest.Whole("a")), "delete": s.Delete(t.Context(), demotest.Whole("a")),
			} {
				if err == nil || errors.Is(err, demo.ErrNotFound) || !strings.Contains(err.Error(), parameter) {
					t.Errorf("%s: %v, want an error that names %s", verb, err, parameter)
				}
			}
			isError(t, "create", s.Create(t.Context(), demotest.Whole("a")), demo.ErrExists)
		})
	}
}

// Ids of any usual length fit, with all that a thing may come to hold.
func TestSizes(t *testing.T) {
	ctx, s := t.Context(), open(t, newPath(t))
	largest := demotest.Whole("a")
	largest.Tags.Instance, largest.Tags.Binding = strings.Repeat("i", 256), strings.Repeat("b", 256)
	largest.Tags.Platform, largest.Tags.Incarnation = strings.Repeat("p", 64), strings.Repeat("n", 22)
	largest.Name = demotest.Name(largest.Tags)
	largest.Plan, largest.Change.Plan = strings.Repeat("l", 64), strings.Repeat("l", 64)
	largest.Verifier = &demo.Verifier{Salt: strings.Repeat("s", 44), Sum: strings.Repeat("s", 88)}
	largest.Past = nil
	for range 8 {
		largest.Past = append(largest.Past, demo.Past{Operation: strings.Repeat("o", 22), Kind: provider.KindDeprovision, Failed: true})
	}
	must(t, s.Create(ctx, largest))
	tooLarge := demotest.Whole("b")
	tooLarge.Tags.Instance = strings.Repeat("i", 5000)
	err := s.Create(ctx, tooLarge)
	if err == nil || !strings.Contains(err.Error(), "4096") {
		t.Errorf("a thing of 5000 bytes: %v, want an error that tells the limit", err)
	}
	if _, err := s.Get(ctx, "b"); !errors.Is(err, demo.ErrNotFound) {
		t.Errorf("it was made: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	s := open(t, newPath(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, get := s.Get(ctx, "a")
	_, _, list := s.List(ctx, "")
	for verb, err := range map[string]error{
		"get": get, "list": list, "create": s.Create(ctx, demotest.Whole("a")),
		"replace": s.Replace(ctx, demotest.Whole("a")), "delete": s.Delete(ctx, demotest.Whole("a")),
	} {
		isError(t, verb, err, context.Canceled)
	}
}

// Of many that make one thing at once, one does.
func TestOneCreates(t *testing.T) {
	path := newPath(t)
	for n := range 5 {
		name := fmt.Sprint("thing-", n)
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			s := open(t, path)
			all.Go(func() {
				thing := demotest.Whole(name)
				thing.Plan = fmt.Sprint("made by ", i)
				errs[i] = s.Create(context.Background(), thing)
			})
		}
		all.Wait()
		made := 0
		for i, err := range errs {
			if err == nil {
				made++
				if thing, err := open(t, path).Get(t.Context(), name); err != nil || thing.Plan != fmt.Sprint("made by ", i) {
					t.Errorf("the thing is not that of the one who made it: %q, %v", thing.Plan, err)
				}
			} else {
				isError(t, "create", err, demo.ErrExists)
			}
		}
		if made != 1 {
			t.Errorf("%d created, want 1", made)
		}
	}
}

// gap does something between the look at a parameter and the write to it.
type gap struct {
	*ssm.Client
	inBetween func()
	calls     []string
}

func (g *gap) pass() {
	if do := g.inBetween; do != nil {
		g.inBetween = nil
		do()
	}
}

func (g *gap) GetParameter(ctx context.Context, in *ssm.GetParameterInput, opts ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	g.calls = append(g.calls, "GetParameter")
	return g.Client.GetParameter(ctx, in, opts...)
}

func (g *gap) PutParameter(ctx context.Context, in *ssm.PutParameterInput, opts ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	g.calls = append(g.calls, "PutParameter")
	g.pass()
	return g.Client.PutParameter(ctx, in, opts...)
}

func (g *gap) DeleteParameter(ctx context.Context, in *ssm.DeleteParameterInput,
	opts ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error) {
	g.calls = append(g.calls, "DeleteParameter")
	g.pass()
	return g.Client.DeleteParameter(ctx, in, opts...)
}

// What SSM cannot decide is told as far as its answers tell it.
func TestGaps(t *testing.T) {
	ctx := context.Background()
	tests := map[string]struct {
		reason    string
		inBetween func(t *testing.T, other *parameters.Store, thing demo.Thing)
		act       func(s *parameters.Store, thing demo.Thing) error
		want      error
		gone      bool
		calls     []string
	}{
		"Replace": {
			reason: "with nothing in between it is a read and a write",
			act:    func(s *parameters.Store, thing demo.Thing) error { return s.Replace(ctx, thing) },
			calls:  []string{"GetParameter", "PutParameter"},
		},
		"Delete": {
			reason: "with nothing in between it is a read and a deletion",
			act:    func(s *parameters.Store, thing demo.Thing) error { return s.Delete(ctx, thing) },
			gone:   true, calls: []string{"GetParameter", "DeleteParameter"},
		},
		"ReplaceOfWhatChanges": {
			reason: "the version tells that another has written",
			inBetween: func(t *testing.T, other *parameters.Store, thing demo.Thing) {
				thing.Plan = "another's"
				must(t, other.Replace(ctx, thing))
			},
			act:  func(s *parameters.Store, thing demo.Thing) error { return s.Replace(ctx, thing) },
			want: demo.ErrChanged, calls: []string{"GetParameter", "PutParameter"},
		},
		"ReplaceOfWhatGoes": {
			reason:    "what was made again by replacing is taken back",
			inBetween: func(t *testing.T, other *parameters.Store, thing demo.Thing) { must(t, other.Delete(ctx, thing)) },
			act:       func(s *parameters.Store, thing demo.Thing) error { return s.Replace(ctx, thing) },
			want:      demo.ErrChanged, gone: true, calls: []string{"GetParameter", "PutParameter", "DeleteParameter"},
		},
		"DeleteOfWhatGoes": {
			reason:    "what is gone already is no error",
			inBetween: func(t *testing.T, other *parameters.Store, thing demo.Thing) { must(t, other.Delete(ctx, thing)) },
			act:       func(s *parameters.Store, thing demo.Thing) error { return s.Delete(ctx, thing) },
			gone:      true, calls: []string{"GetParameter", "DeleteParameter"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			other := open(t, path)
			must(t, other.Create(ctx, demotest.Whole("a")))
			thing, err := other.Get(ctx, "a")
			must(t, err)
			// Past the first version, so that one that begins anew is told.
			must(t, other.Replace(ctx, thing))
			thing, err = other.Get(ctx, "a")
			must(t, err)
			client := &gap{Client: newClient(t)}
			if test.inBetween != nil {
				client.inBetween = func() { test.inBetween(t, other, thing) }
			}
			isError(t, test.reason, test.act(openOver(t, client, path), thing), test.want)
			if _, err := other.Get(ctx, "a"); errors.Is(err, demo.ErrNotFound) != test.gone {
				t.Errorf("%s: the thing is gone: %v, want %v", test.reason, !test.gone, test.gone)
			}
			if d := cmp.Diff(test.calls, client.calls); d != "" {
				t.Errorf("%s: calls (-want +got):\n%s", test.reason, d)
			}
		})
	}
}

// Whatever SSM has against a call other than what the contract names stays as
// it is, and is never taken for absence.
func TestOtherErrors(t *testing.T) {
	s := openOver(t, refusing{}, "/longshore/demo")
	_, get := s.Get(t.Context(), "a")
	_, _, list := s.List(t.Context(), "")
	for verb, err := range map[string]error{
		"get": get, "list": list, "create": s.Create(t.Context(), demotest.Whole("a")), "replace": s.Replace(t.Context(), demotest.Whole("a")),
		"delete": s.Delete(t.Context(), demotest.Whole("a")),
	} {
		var refusal *types.TooManyUpdates
		if !errors.As(err, &refusal) || errors.Is(err, demo.ErrNotFound) || errors.Is(err, demo.ErrExists) || errors.Is(err, demo.ErrChanged) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// refusing refuses everything.
type refusing struct{}

func refusal() error { return &types.TooManyUpdates{Message: aws.String("too many updates")} }

func (refusing) PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	return nil, refusal()
}

func (refusing) GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	return nil, refusal()
}

func (refusing) GetParametersByPath(context.Context, *ssm.GetParametersByPathInput,
	...func(*ssm.Options)) (*ssm.GetParametersByPathOutput, error) {
	return nil, refusal()
}

func (refusing) DeleteParameter(context.Context, *ssm.DeleteParameterInput, ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error) {
	return nil, refusal()
}
