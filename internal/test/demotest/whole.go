package demotest

import (
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
)

// Whole is a thing with every field set.
func Whole(name string) demo.Thing {
	return demo.Thing{
		Name:     name,
		Tags:     provider.Tags{Platform: "platform", Instance: "instance", Binding: "binding", Incarnation: "incarnation"},
		Created:  start,
		Ready:    start.Add(time.Second),
		Plan:     "plan",
		Verifier: &demo.Verifier{Salt: "salt", Sum: "sum"},
		Change: &demo.Change{
			Operation: "op-2", Kind: provider.KindUpdate, Began: start, Ends: start.Add(time.Minute), Fails: true,
			Plan: "plan-2", Removal: demo.Removal{Delay: new(8 * time.Second), Fails: provider.KindDeprovision},
		},
		Past:           []demo.Past{{Operation: "op-1", Kind: provider.KindDeprovision, Failed: true}},
		DeletionFailed: true,
		Removal:        demo.Removal{Delay: new(7 * time.Second), Fails: provider.KindUnbind},
	}
}
