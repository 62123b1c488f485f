package conformance

import (
	"fmt"
	"net/http"
)

// A want is what an answer must be.
type want struct {
	status []int // any of them, or any at all if there is none
	code   string
	tests  []test
}

// A test looks at one thing of an answer, and says what it wanted and got if
// that is not as it should be.
type test func(s *scene, a response) (wanted, got string)

// The error codes that the specification reserves.
const (
	asyncRequired       = "AsyncRequired"
	concurrencyError    = "ConcurrencyError"
	requiresApp         = "RequiresApp"
	maintenanceConflict = "MaintenanceInfoConflict"
)

func reserved(code string) bool {
	return code == asyncRequired || code == concurrencyError || code == requiresApp || code == maintenanceConflict
}

func status(any ...int) want { return want{status: any} }

// refused is a 422 with a reserved code.
func refused(code string) want {
	return want{status: []int{422}, code: code}
}

// Refusals for now, and of a client that cannot wait.
var (
	busy       = refused(concurrencyError)
	cannotWait = refused(asyncRequired)
)

// refusedOr is a 422 with a reserved code, or another answer that the broker
// may choose.
func refusedOr(code string, others ...int) want {
	return want{status: append([]int{422}, others...), code: code}
}

// anything is any answer: what matters of it the rules of every answer say.
var anything = want{}

// running is the state of an operation that has just been accepted: it may have
// ended in the meantime.
var running = status(200).that(holds("state to be in progress", func(a response) bool {
	state := text(a.body, "state")
	return state == inProgress || state == succeeded
}))

// nothingThere wants a deletion to find nothing.
var nothingThere = anything.that(holds("nothing to delete", func(a response) bool {
	return a.status != http.StatusOK && a.status != http.StatusAccepted
}))

// holds is a test which one sentence tells of.
func holds(wanted string, met func(a response) bool) test {
	return func(_ *scene, a response) (string, string) {
		if met(a) {
			return "", ""
		}
		return wanted, a.String()
	}
}

func (w want) that(t test) want {
	tests := make([]test, 0, len(w.tests)+1)
	w.tests = append(append(tests, w.tests...), t)
	return w
}

// present stands for any value that is not empty.
var present = struct{ present bool }{true}

// has wants a member: of the value, or any if it is present. Dots lead into
// objects.
func (w want) has(member string, value any) want {
	return w.that(func(s *scene, a response) (string, string) {
		got, ok := find(a.body, member)
		if value == present {
			if ok && got != "" && got != nil {
				return "", ""
			}
			return "the member " + member, a.String()
		}
		wanted := normal(s.fill(value))
		if ok && same(got, wanted) {
			return "", ""
		}
		return fmt.Sprintf("%s to be %s", member, encode(wanted)), a.String()
	})
}

// says wants a member, if it is there, to be of a value.
func (w want) says(member string, value any) want {
	return w.that(func(s *scene, a response) (string, string) {
		wanted := normal(s.fill(value))
		if got, _ := find(a.body, member); got != nil && !same(got, wanted) {
			return fmt.Sprintf("%s to be %s", member, encode(wanted)), a.String()
		}
		return "", ""
	})
}

// lacks wants members to be absent.
func (w want) lacks(members ...string) want {
	for _, member := range members {
		w = w.that(holds("no member "+member, func(a response) bool {
			_, found := find(a.body, member)
			return !found
		}))
	}
	return w
}

// typed wants a member, if it is there, to be of a JSON type.
func (w want) typed(member, jsonType string) want {
	return w.that(holds(member+" to be of type "+jsonType, func(a response) bool {
		v, _ := find(a.body, member)
		return v == nil || typeOf(v) == jsonType
	}))
}

// header wants a header of a value; an empty value wants it absent.
func (w want) header(name, value string) want {
	return w.that(func(s *scene, a response) (string, string) {
		if got := a.header.Get(name); got != s.text(value) {
			return fmt.Sprintf("the header %s to be %q", name, s.text(value)), fmt.Sprintf("%q", got)
		}
		return "", ""
	})
}

// grantMembers are what a binding gives.
var grantMembers = []string{"credentials", "syslog_drain_url", "route_service_url", "volume_mounts", "endpoints"}

// sameOperation wants the token that was given for the running operation. A
// broker need not give tokens.
func (w want) sameOperation() want {
	return w.that(func(_ *scene, a response) (string, string) {
		if got := text(a.body, "operation"); a.running != "" && got != a.running {
			return "the same operation as the first answer had", "another"
		}
		return "", ""
	})
}
