package parameters_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/parameters"
	"github.com/longshore/longshore/internal/test/demotest"
	"github.com/longshore/longshore/internal/test/parameterstest"
)

const path = "/longshore-test/demo"

// The same proof as over an emulator, over what refuses what SSM refuses.
func TestConformanceOverAFake(t *testing.T) {
	demotest.Run(t, parameters.PageSize, func(*testing.T) func(testing.TB) demo.Things {
		fake := parameterstest.New()
		return func(t testing.TB) demo.Things { return openOver(t, fake, path) }
	})
}

// hostile are the characters that take most room: in JSON, in SSM, in tags.
var hostile = map[string]string{
	"Angle": "<", "Brace": "{", "Quote": `"`, "Backslash": `\`, "Separator": "\u2028", "Wide": "漢", "Widest": "𝄞", "Control": "\x01",
	"Space": "a ", "Letter": "x",
}

func long(part string) string { return strings.Repeat(part, limits.Identifier/len(part)) }

// Whatever ids a platform chooses, up to the longest that the broker takes, an
// instance and a binding are made, found with their whole key, and deleted.
func TestAnyIDsFit(t *testing.T) {
	for name, part := range hostile {
		t.Run(name, func(t *testing.T) {
			ctx, fake := t.Context(), parameterstest.New()
			clock := time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)
			p := demo.New(openOver(t, fake, path), demo.Options{Delay: time.Second, Now: func() time.Time { return clock }})
			must := func(what string, step func() (provider.Status, error)) {
				t.Helper()
				for range 5 {
					status, err := step()
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if clock = clock.Add(status.After); status.Done {
						return
					}
				}
				t.Fatalf("%s is never done", what)
			}
			operation := func(kind provider.Kind, n int) provider.Operation {
				return provider.Operation{ID: fmt.Sprintf("operation-%012d", n), Kind: kind, Started: clock}
			}
			in := provider.Instance{
				Broker: strings.Repeat("B", 26), Platform: strings.Repeat("p", 40), ID: long(part), Incarnation: "incarnation-0123456789",
				ServiceID: "s", PlanID: strings.Repeat("<", limits.CatalogText),
				Operation: operation(provider.KindProvision, 1), Parameters: json.RawMessage(`{"delay_seconds":604799.123456789,"fail":"unbind"}`),
			}
			b := provider.Binding{Instance: in, ID: long(part), Incarnation: "incarnation-9876543210", Parameters: in.Parameters,
				Secret: make([]byte, 32)}
			b.Instance.Operation = operation(provider.KindBind, 2)
			b.Instance.Settings = map[string]any{"valid_days": 3650, "delay_seconds": 1, "secret": "cloud"}
			in.Settings = map[string]any{"delay_seconds": 1}
			in.Source = &provider.Source{Platform: in.Platform, ID: long(part), Incarnation: in.Incarnation}
			must("provision", func() (provider.Status, error) { return p.Provision(ctx, in) })
			for n := range 12 {
				up := in
				up.Operation = operation(provider.KindUpdate, 10+n)
				must("update", func() (provider.Status, error) { return p.Update(ctx, up) })
			}
			must("bind", func() (provider.Status, error) {
				status, err := p.Bind(ctx, b)
				if status.State != nil {
					b.State = *status.State
				}
				return status, err
			})
			held, next, err := p.List(ctx, "")
			if err != nil || next != "" || len(held) != 2 {
				t.Fatalf("the inventory holds %d, then %q: %v", len(held), next, err)
			}
			want := map[provider.Tags]bool{provider.TagsOf(in): true, provider.BindingTagsOf(b): true}
			for _, h := range held {
				tags, err := provider.TagsFrom(fake.Tags(path + "/" + h.Name))
				if err != nil || !want[h.Tags] || tags != h.Tags || h.PlanID != in.PlanID {
					t.Errorf("%s: its value or its labels do not tell whose it is: %v", h.Name, err)
				}
				t.Logf("%s: value of %d bytes", h.Name, len(fake.Value(path+"/"+h.Name)))
			}
			b.Instance.Operation = operation(provider.KindUnbind, 40)
			b.Instance.Parameters, b.Parameters, b.Secret = nil, nil, nil
			for { // it fails once, as it was asked to
				status, err := p.Unbind(ctx, b)
				if clock = clock.Add(status.After); err != nil {
					break
				}
			}
			b.Instance.Operation = operation(provider.KindUnbind, 41)
			must("unbind", func() (provider.Status, error) { return p.Unbind(ctx, b) })
			gone := in
			gone.Operation, gone.Parameters = operation(provider.KindDeprovision, 42), nil
			must("deprovision", func() (provider.Status, error) { return p.Deprovision(ctx, gone) })
			if held, _, err = p.List(ctx, ""); err != nil || len(held) != 0 {
				t.Errorf("%d things are left: %v", len(held), err)
			}
		})
	}
}

// The largest thing that the other limits allow fits a parameter: all at once,
// as no thing ever is.
func TestTheLargestThingsFit(t *testing.T) {
	for name, part := range hostile {
		for _, of := range []string{"Instance", "Binding"} {
			t.Run(name+"/"+of, func(t *testing.T) {
				thing := demotest.Whole("")
				thing.Tags = provider.Tags{Broker: strings.Repeat("B", 26), Platform: strings.Repeat("p", 40), Instance: long(part),
					Incarnation: strings.Repeat("n", 22)}
				thing.Plan, thing.Change.Plan = strings.Repeat("<", limits.CatalogText), strings.Repeat("{", limits.CatalogText)
				thing.Change.Operation, thing.Past = strings.Repeat("o", 22), nil
				past := 8
				if of == "Binding" { // it is never updated: what ends are its bind, and an unbind that fails
					thing.Tags.Binding, thing.Change.Plan, past = long(part), "", 2
				}
				for range past {
					thing.Past = append(thing.Past, demo.Past{Operation: strings.Repeat("o", 22), Kind: provider.KindDeprovision, Failed: true})
				}
				key := demo.Key(strings.Repeat("s", 16) + "." + strings.Repeat("k", 43))
				thing.Verifier, thing.Keys, thing.Quarantined = nil, []demo.Key{key, key}, true // keys are longer than a verifier
				thing.Expires = time.Date(2999, 12, 31, 23, 59, 59, 999999999, time.UTC)
				thing.Name = demotest.Name(thing.Tags)
				fake := parameterstest.New()
				s := openOver(t, fake, path)
				must(t, s.Create(t.Context(), thing))
				read, err := s.Get(t.Context(), thing.Name)
				must(t, err)
				t.Logf("value of %d bytes", len(fake.Value(path+"/"+thing.Name)))
				thing.Revision = read.Revision
				if diff := cmp.Diff(thing, read); diff != "" {
					t.Errorf("read otherwise than written:\n%.1000s", diff)
				}
				must(t, s.Replace(t.Context(), read))
			})
		}
	}
}

// What an earlier program wrote is found and deleted: ids stood as they are,
// escaped.
func TestEarlierValuesAreRead(t *testing.T) {
	fake := parameterstest.New()
	tags := provider.Tags{Platform: "platform", Instance: "weird {{ssm:other}} =YSNi", Incarnation: "incarnation"}
	name := demotest.Name(tags)
	fake.Put(path+"/"+name, fmt.Sprintf(`{"name":%q,"tags":{"platform":"platform","instance":"weird \u007b\u007bssm:other\u007d\u007d =YSNi",`+
		`"incarnation":"incarnation"},"created":"2030-01-02T03:04:05Z","ready":"2030-01-02T03:04:06Z","plan":"plan","parameters":"5c1f"}`, name))
	p := demo.New(openOver(t, fake, path), demo.Options{})
	held, _, err := p.List(t.Context(), "")
	if err != nil || len(held) != 1 || held[0].Tags != tags {
		t.Fatalf("the inventory holds %+v: %v", held, err)
	}
	status, err := p.Deprovision(context.Background(), provider.Instance{
		Platform: tags.Platform, ID: tags.Instance, Incarnation: tags.Incarnation,
		Operation: provider.Operation{ID: "op", Kind: provider.KindDeprovision},
	})
	if err != nil || !status.Done || fake.Value(path+"/"+name) != "" {
		t.Errorf("it cannot be deleted: %+v %v", status, err)
	}
}

// What fits as it is stays as earlier programs read it.
func TestUsualValuesAreNotCoded(t *testing.T) {
	fake := parameterstest.New()
	thing := demotest.Whole("a")
	thing.Tags.Instance = `weird "#1" <é>`
	must(t, openOver(t, fake, path).Create(t.Context(), thing))
	if value := fake.Value(path + "/a"); !strings.Contains(value, `"instance":"weird \"#1\" \u003cé\u003e"`) ||
		strings.Contains(value, "coded") {
		t.Errorf("value %s", value)
	}
}
