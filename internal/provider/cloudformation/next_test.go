package cloudformation

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

var own = provider.Tags{Broker: "b", Platform: "p", Instance: "i", Incarnation: "one"}

// at is what is observed where nothing is recorded of the operation yet.
func at(status string) observed {
	s := observed{tags: own, rule: plan.Empty, instanceState: instanceState{Work: work{Operation: "op"}}}
	if status != "" {
		s.stack = &stack{id: "id", status: status, tags: own}
	}
	return s
}

// after is that where a call is recorded, and the latest event is of it.
func after(v verb, status string) observed {
	s := at(status)
	s.Work.Call = call{Verb: v, Number: 1, Stack: "id"}
	s.carried, s.consumed = true, true
	return s
}

func (d decision) text() string {
	switch {
	case d.verb != "":
		return fmt.Sprintf("%s %s", d.act, d.verb)
	case d.act == actFail || d.act == actExplain:
		return fmt.Sprintf("%s usable=%v", d.act, d.failed.InstanceUsable == nil || *d.failed.InstanceUsable)
	}
	return string(d.act)
}

// nexts are the answers to each verb, for every status that a stack can have.
var nexts = map[string][3]string{ // provision, update, deprovision
	"":                                             {"record create", "fail usable=true", "done"},
	"CREATE_IN_PROGRESS":                           {"wait", "wait", "record delete"},
	"CREATE_FAILED":                                {"explain usable=true", "fail usable=false", "record delete"},
	"CREATE_COMPLETE":                              {"done", "record update", "record delete"},
	"ROLLBACK_IN_PROGRESS":                         {"wait", "wait", "record delete"},
	"ROLLBACK_FAILED":                              {"explain usable=true", "fail usable=false", "record delete"},
	"ROLLBACK_COMPLETE":                            {"explain usable=true", "fail usable=false", "record delete"},
	"DELETE_IN_PROGRESS":                           {"wait", "wait", "wait"},
	"DELETE_FAILED":                                {"record delete", "fail usable=false", "record delete"},
	"UPDATE_IN_PROGRESS":                           {"wait", "wait", "record cancel"},
	"UPDATE_COMPLETE":                              {"done", "record update", "record delete"},
	"UPDATE_FAILED":                                {"done", "record update", "record delete"},
	"UPDATE_ROLLBACK_IN_PROGRESS":                  {"wait", "wait", "wait"},
	"UPDATE_ROLLBACK_FAILED":                       {"done", "record continue", "record delete"},
	"UPDATE_ROLLBACK_COMPLETE":                     {"done", "record update", "record delete"},
	"REVIEW_IN_PROGRESS":                           {"record delete", "fail usable=false", "record delete"},
	"IMPORT_IN_PROGRESS":                           {"wait", "wait", "wait"},
	"IMPORT_COMPLETE":                              {"done", "record update", "record delete"},
	"IMPORT_ROLLBACK_IN_PROGRESS":                  {"wait", "wait", "wait"},
	"IMPORT_ROLLBACK_FAILED":                       {"done", "fail usable=false", "record delete"},
	"IMPORT_ROLLBACK_COMPLETE":                     {"done", "record update", "record delete"},
	"UPDATE_COMPLETE_CLEANUP_IN_PROGRESS":          {"wait", "wait", "wait"},
	"UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": {"wait", "wait", "wait"},
	"DELETE_COMPLETE":                              {"wait", "fail usable=false", "record delete"},
}

// Every status that CloudFormation knows has its next step for each verb.
func TestEveryStatus(t *testing.T) {
	for _, status := range append(types.StackStatus("").Values(), "") {
		want, ok := nexts[string(status)]
		if !ok {
			t.Errorf("nothing is said of %s", status)
			continue
		}
		got := [3]string{at(string(status)).provision().text(), at(string(status)).update().text(),
			at(string(status)).deprovision().text()}
		expect.Same(t, fmt.Sprintf("%q", status), want, got)
		foreign := at(string(status))
		if foreign.stack == nil {
			continue
		}
		foreign.stack.tags.Instance = "another"
		for _, d := range []decision{foreign.provision(), foreign.update(), foreign.deprovision()} {
			if d.act != actFail || d.failed.Message != textNotOurs {
				t.Errorf("%q of another instance: %+v", status, d)
			}
		}
	}
}

// TestNext proves which decision follows each call that was made, or that has failed.
func TestNext(t *testing.T) {
	with := func(s observed, change func(*observed)) observed { change(&s); return s }
	sent := func(v verb, status string) observed {
		return with(after(v, status), func(s *observed) { s.carried, s.consumed = false, false })
	}
	late := func(s *observed) { s.late = true }
	updated := func(s *observed) { s.Work.Updated = true }
	retain := func(s *observed) { s.rule = plan.Retain }
	marked := func(s *observed) { s.rule, s.stack.retained = plan.Retain, true }
	failed := func(s *observed) { s.Work.Failed = &provider.Failure{Message: "why"} }
	for name, c := range map[string]struct {
		reason string
		got    decision
		want   string
	}{
		"CreateSent": {"a call whose effect is not seen is made with the number that is recorded",
			with(at(""), func(s *observed) { s.Work.Call = call{Verb: callCreate, Number: 1} }).provision(), "send create"},
		"CreateGone": {"a call that was done is not done again: another number is needed",
			with(at(""), func(s *observed) {
				s.Work.Call, s.consumed = call{Verb: callCreate, Number: 1}, true
			}).provision(), "record create"},
		"CreateFailed":   {"it has left something", with(at(rollbackComplete), failed).provision(), "record delete"},
		"CreateCleaned":  {"nothing is left", with(at(""), failed).provision(), "fail usable=true"},
		"UpdateSent":     {"not seen yet", sent(callUpdate, createComplete).update(), "send update"},
		"UpdateOld":      {"the status is of an earlier update", sent(callUpdate, updateComplete).update(), "send update"},
		"UpdateDone":     {"", after(callUpdate, updateComplete).update(), "finish"},
		"UpdateUndone":   {"", after(callUpdate, updateRolledBack).update(), "explain usable=true"},
		"UpdateStuck":    {"", after(callUpdate, updateRollbackFailed).update(), "record continue"},
		"ContinueSent":   {"", sent(callContinue, updateRollbackFailed).update(), "send continue"},
		"ContinueFailed": {"only one try", after(callContinue, updateRollbackFailed).update(), "explain usable=false"},
		"ContinueFirst":  {"it stood so before", after(callContinue, updateRolledBack).update(), "record update"},
		"ContinueDone":   {"", with(after(callContinue, updateRolledBack), updated).update(), "explain usable=true"},
		"UpdateLate":     {"it can be undone in time", with(after(callUpdate, updateInProgress), late).update(), "record cancel"},
		"UpdateTooLate":  {"it would have to be undone at once", with(at(createComplete), late).update(), "fail usable=true"},
		"UpdateLateSent": {"it may be on its way, and then it has to be seen and stopped",
			with(sent(callUpdate, createComplete), func(s *observed) { s.late, s.Work.Updated = true, true }).update(),
			"send update"},
		"UpdateLateOfOthers": {"it is not ours to stop", with(sent(callUpdate, updateInProgress), late).update(), "wait"},
		"UpdateLateCleanup":  {"all is as it is to be", with(after(callUpdate, updateCleanup), late).update(), "finish"},
		"StopSent":           {"", with(sent(callCancel, updateInProgress), late).update(), "send cancel"},
		"Stopping":           {"", with(after(callCancel, updateInProgress), late).update(), "wait"},
		"Stopped": {"whichever call the events name", with(sent(callCancel, updateRolledBack), updated).update(),
			"explain usable=true"},
		"StoppedTooLate": {"it was done before", with(sent(callCancel, updateComplete), updated).update(), "finish"},
		"StopStuck":      {"", with(after(callCancel, updateRollbackFailed), updated).update(), "record continue"},
		"DeleteSent":     {"", sent(callDelete, createComplete).deprovision(), "send delete"},
		"DeleteFailed":   {"again, with a token of its own", after(callDelete, deleteFailed).deprovision(), "record delete"},
		"DeleteFlipped": {"the end of a creation came after it",
			with(after(callDelete, createComplete), func(s *observed) { s.carried = false }).deprovision(), "record delete"},
		"DeleteFailedForGood": {"",
			with(after(callDelete, deleteFailed), func(s *observed) { s.Work.Tries = maxTries }).deprovision(),
			"explain usable=false"},
		"CancelSent":       {"", sent(callCancel, updateInProgress).deprovision(), "send cancel"},
		"Cancelling":       {"", after(callCancel, updateInProgress).deprovision(), "wait"},
		"Cancelled":        {"", after(callCancel, updateRolledBack).deprovision(), "record delete"},
		"Retain":           {"", with(at(createComplete), retain).deprovision(), "record retain"},
		"RetainUnfinished": {"there is nothing to retain", with(at(rollbackComplete), retain).deprovision(), "record delete"},
		"Retaining": {"it is not an update to cancel", with(after(callRetain, updateInProgress), retain).deprovision(),
			"wait"},
		"RetainFailed": {"nothing may be lost", with(after(callRetain, updateRolledBack), retain).deprovision(),
			"explain usable=true"},
		"RetainStuck": {"deleted as it is, it would take what is to be retained with it",
			with(at(updateRollbackFailed), retain).deprovision(), "record continue"},
		"RetainStuckForGood": {"nothing may be lost", with(after(callContinue, updateRollbackFailed), retain).deprovision(),
			"explain usable=false"},
		"RetainLoose": {"", with(after(callContinue, updateRolledBack), retain).deprovision(), "record retain"},
		"RetainDeletedByHand": {"it takes no update that would mark it: what is left is spared by the deletion",
			with(at(deleteFailed), retain).deprovision(), "record delete"},
		"RetainMarked": {"the template says it", with(at(deleteFailed), marked).deprovision(), "record delete"},
		"RetainImportStuck": {"nothing may be lost", with(at("IMPORT_ROLLBACK_FAILED"), retain).deprovision(),
			"explain usable=false"},
		"Protected": {"somebody has forbidden it: what it holds is not removed either",
			with(at(createComplete), func(s *observed) { s.stack.protected = true }).deprovision(), "fail usable=true"},
		"Retained": {"", with(after(callRetain, updateComplete), marked).deprovision(), "record delete"},
	} {
		expect.Same(t, name+": "+c.reason, c.want, c.got.text())
	}
}

func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range []work{
		{Operation: "op", Call: call{Verb: callCreate, Number: 1}}, {Operation: "op", Call: call{Verb: callCreate, Number: 11}},
		{Operation: "op", Call: call{Verb: callUpdate, Number: 1}}, {Operation: "op1", Call: call{Verb: callCreate, Number: 1}},
		{Operation: "ö/.+\n", Call: call{Verb: callCreate, Number: 1}},
	} {
		token := w.token()
		if seen[token] || len(token) > 128 || plan.Clean(token) != token {
			t.Errorf("%+v has the token %q", w, token)
		}
		seen[token] = true
		w.Call.Stack, w.Call.Mark = "another", "another"
		if w.token() != token {
			t.Errorf("%+v: the token differs with what is not of the call", w)
		}
	}
}
