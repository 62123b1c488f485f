package conformance

import (
	"fmt"
	"net/http"
)

// A want describes the answer that is wanted.
type want struct {
	status []int // any of these; any at all if empty
	code   string
	tests  []test
}

// A test checks one aspect of an answer. If that is not as it should be, the test returns what it
// wanted and what it got.
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

// refused wants a 422 with a reserved error code.
func refused(code string) want {
	return want{status: []int{422}, code: code}
}

// Temporary refusals, and refusals of a client that cannot wait.
var (
	busy       = refused(concurrencyError)
	cannotWait = refused(asyncRequired)
)

// refusedOr wants a 422 with a reserved error code, or another status that the broker may choose.
func refusedOr(code string, others ...int) want {
	return want{status: append([]int{422}, others...), code: code}
}

// anything accepts any answer: the rules that hold for every answer check it.
var anything = want{}

// running wants the state of an operation that has just been accepted, which may have succeeded in the meantime.
var running = status(200).that(holds("state to be in progress", func(a response) bool {
	state := text(a.body, "state")
	return state == inProgress || state == succeeded
}))

// nothingThere wants a deletion to find nothing.
var nothingThere = anything.that(holds("nothing to delete", func(a response) bool {
	return a.status != http.StatusOK && a.status != http.StatusAccepted
}))

// holds makes a test from a condition, with a sentence that says what is wanted.
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

// has wants a member with the value, or with any value if that is present. Dots lead into nested objects.
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

// says wants a member, if it is there, to have the value.
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

// typed wants a member, if it is there, to have the JSON type.
func (w want) typed(member, jsonType string) want {
	return w.that(holds(member+" to be of type "+jsonType, func(a response) bool {
		v, _ := find(a.body, member)
		return v == nil || typeOf(v) == jsonType
	}))
}

// header wants a header with the value; an empty value wants the header to be absent.
func (w want) header(name, value string) want {
	return w.that(func(s *scene, a response) (string, string) {
		if got := a.header.Get(name); got != s.text(value) {
			return fmt.Sprintf("the header %s to be %q", name, s.text(value)), fmt.Sprintf("%q", got)
		}
		return "", ""
	})
}

// grantMembers are the members that make up a grant.
var grantMembers = []string{"credentials", "syslog_drain_url", "route_service_url", "volume_mounts", "endpoints"}

// sameOperation wants the token that was given for the running operation. A broker need not give tokens.
func (w want) sameOperation() want {
	return w.that(func(_ *scene, a response) (string, string) {
		if got := text(a.body, "operation"); a.running != "" && got != a.running {
			return "the same operation as the first answer had", "another"
		}
		return "", ""
	})
}
