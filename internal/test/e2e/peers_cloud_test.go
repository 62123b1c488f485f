package e2e_test

import (
	"net"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

func cloudServiceBroker() []defect {
	return []defect{
		{id: "C1", kit: "PROV-19 UPD-12",
			wrong: "a parameter that is unknown or of a wrong type is 500, which makes the platform clean up",
			right: "400, and nothing changes"},
		{id: "C2", kit: "UPD-06/unknown", wrong: "an update to an unknown plan is 500", right: "400, and nothing changes"},
		{id: "C3", kit: "GETI-04 ERR-04/sentence",
			wrong: "reading an instance that is being updated is 422 with the code in the place of the sentence",
			right: "422 with the code `ConcurrencyError` and a sentence"},
		{id: "C4", kit: "PROV-20/other", wrong: "a PUT with a maintenance version of yesterday is taken",
			right: "422 `MaintenanceInfoConflict`, and nothing is made"},
		{id: "C5", kit: "PROV-07", wrong: "the same provision again is 409", right: "200 `{}`"},
		{id: "C6", kit: "BIND-02/credentials", wrong: "the same bind again is 409", right: "200 with the same credentials"},
		{id: "C7", kit: "LOB-02 LOB-06 LOB-01", wrong: "polling a binding is 422 `AsyncRequired`",
			right: "404 for an unknown one, and the state of a known one, however it was made"},
		{id: "C8", kit: "GETB-01", wrong: "a binding can be read, and its credentials are not there",
			right: "what the bind said, for whoever lost that answer"},
		{id: "C9", kit: "UPD-22 CONC-07",
			wrong: "a PATCH while a PATCH runs is 202: both work on one state, and the last to end wins",
			right: "422 `ConcurrencyError`, also if both come at once"},
		{id: "C10", rules: "UNB-08, ORB-01", tests: []string{"internal/work/worker TestDyingAtEveryEffect"},
			wrong: "an unbind that overtakes its bind is 410, and the bind goes on and makes a key for nobody",
			right: "the unbind ends the bind and removes what it made, even if the broker died meanwhile",
			show: func(r *runOf) {
				r.Run("Alive", func(t *testing.T) { t.Parallel(); givesUpOnABind(t, false) })
				r.Run("Killed", func(t *testing.T) { t.Parallel(); givesUpOnABind(t, true) })
			}},
		{id: "C11", tests: []string{"internal/test/e2e TestNoSecretLeaks"}, wrong: "the parameters of a provision are logged",
			right: "no parameter is ever printed"},
		{id: "C12", rules: "NFR-02", tests: []string{"internal/test/e2e TestKilledAtAnyMoment"},
			wrong: "killed while it makes something, it has forgotten what that is",
			right: "the operation goes on after the next start, and a deletion leaves nothing"},
		{id: "C13",
			tests: []string{"internal TestNothingSkipsVerification",
				"internal/provider/hosted TestTLSIsVerifiedUnlessToldOtherwise"},
			wrong: "with certificates of one's own, the database's is not verified unless a setting says so",
			right: "a server's certificate is verified, whoever issued it, unless the operator's own setting of that server " +
				"says otherwise", never: "no plan and no parameter has a say in TLS"},
	}
}

func elsewhere() []defect {
	return []defect{
		{id: "G1", kit: "UPD-04/missing UPD-04/unknown BIND-04/service_id BIND-05/service LOP-12/mismatch LOB-05",
			wrong: "an unknown or missing service_id is a panic, also on a poll, where it is optional",
			right: "400 where it is required; a poll does without"},
		{id: "G2", kit: "UNB-02/unknown UNB-03", wrong: "an unbind of what never was is 200", right: "410 `{}`"},
	}
}

// givesUpOnABind hangs up on a bind that is being made, as a platform does whose time is over, and unbinds.
func givesUpOnABind(t *testing.T, killed bool) {
	data, binding := t.TempDir(), bindingPath("i", "b")
	p := start(t, data, credentials()...)
	must(t, p.url, "PUT", instancePath("i"), provisionBody(planSync, `{}`), 201)
	request := expect.Get(asked("PUT", p.url+binding, planBody(service, planSync, `,"parameters":{"delay_seconds":2}`), nil))(t)
	line := expect.Get(net.Dial("tcp", request.URL.Host))(t)
	expect.OK(t, request.Write(line))
	p.begun(t, binding)
	_ = line.Close()
	if killed {
		p.kill()
		p = start(t, data, credentials()...)
	}
	must(t, p.url, "GET", binding, "", 404) // it is still being made
	must(t, p.url, "DELETE", binding+"?"+hints(planSync), "", 200)
	must(t, p.url, "GET", binding, "", 404)
	must(t, p.url, "DELETE", binding+"?"+hints(planSync), "", 410)
}
