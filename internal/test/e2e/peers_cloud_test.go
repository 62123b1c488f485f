package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

func cloudServiceBroker() []defect {
	return append(cloudServiceBrokerRequests(), cloudServiceBrokerSecrets()...)
}

func cloudServiceBrokerRequests() []defect {
	return []defect{
		{
			id: "C1", rules: "PROV-19, UPD-12",
			wrong: "a parameter that is unknown or of a wrong type is 500, which makes the platform clean up",
			right: "400, and nothing changes", kit: []string{"PROV-19", "UPD-12"},
		},
		{
			id: "C2", rules: "UPD-06", wrong: "an update to an unknown plan is 500", right: "400, and nothing changes",
			kit: []string{"UPD-06/unknown"},
		},
		{
			id: "C3", rules: "GETI-04, ERR-04",
			wrong: "reading an instance that is being updated is 422 with the code in the place of the sentence",
			right: "422 with the code `ConcurrencyError` and a sentence", kit: []string{"GETI-04", "ERR-04/sentence"},
		},
		{
			id: "C4", rules: "PROV-20", wrong: "a PUT with a maintenance version of yesterday is taken",
			right: "422 `MaintenanceInfoConflict`, and nothing is made", kit: []string{"PROV-20/other"},
		},
		{id: "C5", rules: "PROV-07", wrong: "the same provision again is 409", right: "200 `{}`", kit: []string{"PROV-07"}},
		{
			id: "C6", rules: "BIND-02", wrong: "the same bind again is 409", right: "200 with the same credentials",
			kit: []string{"BIND-02/credentials"},
		},
		{
			id: "C7", rules: "LOB-02, LOB-06", wrong: "polling a binding is 422 `AsyncRequired`",
			right: "404 for an unknown one, and the state of a known one, however it was made",
			kit:   []string{"LOB-02", "LOB-06", "LOB-01"},
		},
		{
			id: "C8", rules: "GETB-01", wrong: "a binding can be read, and its credentials are not there",
			right: "what the bind said, for whoever lost that answer", kit: []string{"GETB-01"},
		},
		{
			id: "C9", rules: "UPD-22, CONC-07",
			wrong: "a PATCH while a PATCH runs is 202: both work on one state, and the last to end wins",
			right: "422 `ConcurrencyError`, also if both come at once", kit: []string{"UPD-22", "CONC-07"},
		},
		{
			id: "C10", rules: "UNB-08, ORB-01",
			wrong: "an unbind that overtakes its bind is 410, and the bind goes on and makes a key for nobody",
			right: "the unbind ends the bind and removes what it made, even if the broker died meanwhile",
			show: func(r *runOf) {
				r.Run("Alive", func(t *testing.T) { t.Parallel(); givesUpOnABind(t, false) })
				r.Run("Killed", func(t *testing.T) { t.Parallel(); givesUpOnABind(t, true) })
			},
			tests: []string{"internal/work/worker TestDyingAtEveryEffect"},
		},
	}
}

func cloudServiceBrokerSecrets() []defect {
	return []defect{
		{
			id: "C11", wrong: "the parameters of a provision are logged", right: "no parameter is ever printed",
			show: func(r *runOf) {
				const canary = "canary-c11"
				log := printed(r, func(r *runOf) {
					r.prove(httpCase{method: "PUT", path: "I",
						body: strings.Replace(sync1, `"b":"x"`, `"b":"`+canary+`","`+canary+`":true`, 1), status: 201})
					r.prove(httpCase{method: "PATCH", path: "I",
						body: `{"service_id":"$demo","parameters":{"c":"` + canary + `"}}`, status: 200})
					r.prove(httpCase{method: "PUT", path: bindings,
						body: strings.Replace(bind1, "{", `{"parameters":{"c":"`+canary+`"},`, 1), status: 201})
					late := r.another()
					late.prove(httpCase{method: "PUT", path: "I" + async,
						body: strings.Replace(strings.Replace(sync1, "$sync", "$async", 1), `"x"`, `"`+canary+`"`,
							1), status: 202})
					settled(late, late.base, late.path("I"))
				})
				if strings.Contains(log, canary) || !strings.Contains(log, "result=succeeded") {
					r.Errorf("the log tells parameters, or nothing:\n%s", log)
				}
			},
		},
		{
			id: "C12", rules: "NFR-02", wrong: "killed while it makes something, it has forgotten what that is",
			right: "the operation goes on after the next start, and a deletion leaves nothing",
			show: func(r *runOf) {
				data := r.TempDir()
				p := start(r, data, credentials("LONGSHORE_DEMO_DELAY=300ms")...)
				path := instancePath("i")
				token := must(r, p.url, "PUT", path+async, provisionBody(planAsync, `{}`), 202).text("operation")
				waitFor(r, settleLimit, "the instance to be half made", func() bool { return begun(r, p.url, path) })
				p.kill()
				p = start(r, data, credentials("LONGSHORE_DEMO_DELAY=20ms")...)
				if state := settled(r, p.url, path); state != "succeeded" {
					r.Errorf("the provision ended %q", state)
				}
				must(r, p.url, "GET", path+"/last_operation?operation="+token, "", 200)
				must(r, p.url, "DELETE", path+"?"+hints(planAsync), "", 200)
				must(r, p.url, "GET", path, "", 404)
			},
			tests: []string{"internal/test/e2e TestKilledAtAnyMoment"},
		},
		{
			id: "C13", wrong: "with certificates of one's own, the database's is not verified unless a setting says so",
			right: "a server's certificate is verified, whoever issued it, unless the operator's own setting of that server " +
				"says otherwise",
			never: "no plan and no parameter has a say in TLS",
			tests: []string{"internal TestNothingSkipsVerification",
				"internal/provider/hosted TestTLSIsVerifiedUnlessToldOtherwise"},
		},
	}
}

func elsewhere() []defect {
	return []defect{
		{
			id: "G1", rules: "UPD-04, BIND-04, BIND-05, LOP-12, LOB-05",
			wrong: "an unknown or missing service_id is a panic, also on a poll, where it is optional",
			right: "400 where it is required; a poll does without",
			kit: []string{"UPD-04/missing", "UPD-04/unknown", "BIND-04/service_id", "BIND-05/service",
				"LOP-12/mismatch", "LOB-05"},
		},
		{
			id: "G2", rules: "UNB-02", wrong: "an unbind of what never was is 200", right: "410 `{}`",
			kit: []string{"UNB-02/unknown", "UNB-03"},
		},
	}
}

// givesUpOnABind hangs up on a bind that is being made, as a platform does whose time is over, and unbinds.
func givesUpOnABind(t *testing.T, killed bool) {
	data := t.TempDir()
	p := start(t, data, credentials()...)
	path := instancePath("i")
	must(t, p.url, "PUT", path, provisionBody(planSync, `{}`), 201)
	request := expect.Get(http.NewRequest("PUT", p.url+path+"/service_bindings/b", strings.NewReader(
		fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"parameters":{"delay_seconds":2}}`, service, planSync))))(t)
	request.SetBasicAuth(username, password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	line := expect.Get(net.Dial("tcp", request.URL.Host))(t)
	expect.OK(t, request.Write(line))
	waitFor(t, settleLimit, "the key to be half made", func() bool { return begun(t, p.url, path+"/service_bindings/b") })
	_ = line.Close()
	if killed {
		p.kill()
		p = start(t, data, credentials()...)
	}
	must(t, p.url, "GET", path+"/service_bindings/b", "", 404) // it is still being made
	must(t, p.url, "DELETE", path+"/service_bindings/b?"+hints(planSync), "", 200)
	must(t, p.url, "GET", path+"/service_bindings/b", "", 404)
	must(t, p.url, "DELETE", path+"/service_bindings/b?"+hints(planSync), "", 410)
}
