package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// pollLimit is the longest operation token, in characters (PROV-25).
const pollLimit = 10_000

// shows sends the requests of a row to the broker that runs, and checks its answers.
func shows() map[string]func(r *runOf) {
	all := brokerapiShown()
	maps.Copy(all, othersShown())
	return all
}

func brokerapiShown() map[string]func(r *runOf) {
	return map[string]func(r *runOf){
		// HDR-06
		"B2": func(r *runOf) {
			const header = "X-Broker-API-Version"
			a := r.prove(refused("PUT I", sync1, 412, "VersionNotSupported").as(header, "").leaves(noInstance))
			expect.Says(r, "the description", a.text("description"), header)
		},
		// INP-09
		"B11b": asks(
			refused("PUT I?accepts_incomplete=1", sync1, 400, bad).leaves(noInstance),
			refused("PATCH I?accepts_incomplete=1", `{"service_id":"$demo"}`, 400, bad).in(ready).leaves(stillReady),
			refused("DELETE I?accepts_incomplete=1&"+ids, "", 400, bad).in(ready).leaves(stillReady),
			refused("PUT I/B?accepts_incomplete=1", bind1, 400, bad).in(ready).leaves(noBinding),
			refused("DELETE I/B?accepts_incomplete=1&"+ids, "", 400, bad).in(bound).leaves(reads("I/B", 200)),
		),
		// INP-14, INP-02, INP-03
		"B15": asks(
			refused("PUT I", with(sync1, `"x":"`+strings.Repeat("a", 60<<20)+`"`), 413, tooLarge).leaves(noInstance),
			refused("PUT I", sync1+"garbage", 400, bad).leaves(noInstance),
			refused("PUT I", sync1+sync1, 400, bad).leaves(noInstance),
			refused("PUT I", demoOf("sync", `"str"`), 400, bad).leaves(noInstance),
			refused("PATCH I", changing(`"str"`), 400, bad).in(ready).leaves(stillReady),
			refused("PUT I/B", with(bind1, `"parameters":"str"`), 400, bad).in(ready).leaves(noBinding),
		),
		// CAT-01, CAT-27
		"B16": func(r *runOf) {
			a := r.prove(httpCase{asks: "GET /v2/catalog", status: 200, has: []string{"services"}, only: true})
			expect.Never(r, "the catalog", a.raw, "null")
			var schemas struct {
				Services []struct {
					Plans []struct {
						Schemas map[string]map[string]struct{ Parameters map[string]any }
					}
				}
			}
			expect.OK(r, json.Unmarshal([]byte(a.raw), &schemas))
			seen := 0
			for _, s := range schemas.Services {
				for _, p := range s.Plans {
					for _, of := range p.Schemas {
						for verb, schema := range of {
							if seen++; schema.Parameters["$schema"] == nil {
								r.Errorf("a schema for %s has no $schema", verb)
							}
						}
					}
				}
			}
			expect.Least(r, "schemas that were seen", 10, seen)
		},
		// INP-13, INP-14, INP-15, NFR-10
		"B19": asks(
			refused("PUT I"+strings.Repeat("x", 800), sync1, 400, bad),
			refused("PUT I", swap(sync1, `"x"`, `"`+strings.Repeat("x", 64<<10)+`"`), 400, bad).leaves(noInstance),
			refused("PUT I", with(sync1, `"x":`+strings.Repeat("[", 1001)+strings.Repeat("]", 1001)), 400,
				bad).leaves(noInstance),
			refused("PUT I", with(sync1, `"x":"`+strings.Repeat("x", 256<<10)+`"`), 413, tooLarge).leaves(noInstance),
		),
		// PROV-25, LOP-17
		"B21": func(r *runOf) {
			long := "I" + strings.Repeat("%20", 780)
			a := r.prove(httpCase{rule: "PROV-25", asks: "PUT " + long + async, body: swap(sync1, "$sync", "$async"),
				status: 202, has: []string{"operation", "dashboard_url"}, only: true})
			token := a.text("operation")
			if len(token) > pollLimit || url.QueryEscape(token) != token {
				r.Errorf("a token of %d characters, %.60q…", len(token), token)
			}
			r.prove(httpCase{rule: "LOP-06", asks: "GET " + long + "/last_operation?operation=" + token, status: 200,
				has: []string{"state"}})
		},
		// LOP-05, UPD-24, UPD-09, DEPR-13, CAT-25, CAT-30
		"B26": func(r *runOf) {
			for _, c := range []httpCase{
				{asks: "PUT I" + async, body: long1, status: 202, has: []string{"operation"}},
				{given: provisioning, asks: "GET I/last_operation", status: 200, has: []string{"state"}},
			} {
				if a := r.another().prove(c); !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(a.header.Get("Retry-After")) {
					r.Errorf("%s: Retry-After %q", c.asks, a.header.Get("Retry-After"))
				}
			}
			r.another().prove(httpCase{given: updatedBad, asks: "GET I/last_operation", status: 200, only: true,
				has: []string{`state="failed"`, "description", "instance_usable=true", "update_repeatable=true"}})
			r.another().prove(httpCase{given: maintained, asks: "GET I", status: 200,
				has: []string{`maintenance_info={"version":"2.0.0"}`}})
			catalog := r.prove(httpCase{asks: "GET /v2/catalog", status: 200})
			expect.Says(r, "the catalog", catalog.raw, `"binding_rotatable":true`)
			unchanged(r, catalog.header.Get("ETag"))
		},
	}
}

func othersShown() map[string]func(r *runOf) {
	const cloudFoundry = `"context":{"platform":"cloudfoundry"}`
	return map[string]func(r *runOf){
		// AUTH-04
		"A3": func(r *runOf) {
			p := start(r, r.TempDir()) // nothing is set
			for _, path := range []string{"/metrics", "/healthz/", "/debug/pprof/", "/", "/v2/catalog", "/operations/x"} {
				one := newRun(r.T, p.url, r.values)
				one.prove(refused("GET "+path, "", 401, "Unauthorized").as("Authorization", ""))
			}
			r.prove(refused("GET /metrics", "", 404, "NotFound"))
		},
		// PROV-15, PROV-16
		"A7": asks(
			refused("PUT I", planBody("$demo", "$sync", ","+cloudFoundry), 400, bad).leaves(noInstance),
			httpCase{rule: "PROV-16", asks: "PUT I", body: planBody("$demo", "$sync", ","+cloudFoundry), status: 201,
				header: version("2.9")},
			httpCase{rule: "PROV-15", asks: "PUT I", body: with(sync1, cloudFoundry), status: 201},
		),
		// PROV-19
		"A8": asks(
			refused("PUT I", demoOf("schema", `{"parameter1":"banana"}`), 400, bad).leaves(noInstance),
			refused("PUT I", demoOf("schema", `{"parameter1":{"a":[1,2]}}`), 400, bad).leaves(noInstance),
			refused("PUT I", demoOf("schema", `{"size":"huge"}`), 400, bad).leaves(noInstance),
			httpCase{rule: "GETI-01", asks: "PUT I", body: demoOf("sync", `{"a":{"b":[1,{"c":null}]}}`), status: 201,
				then: reads("I", 200, `parameters={"a":{"b":[1,{"c":null}]}}`)},
		),
		// PROV-34
		"A13": asks(
			alone("", "PUT I", sync1, 201, "dashboard_url"),
			alone("", "PUT I"+async, long1, 202, "operation", "dashboard_url"),
			alone(ready, "PATCH I", changing(`{"a":2}`), 200),
			alone(readyAsync, "PATCH I"+async, changing(`{"a":2}`), 202, "operation"),
			alone(ready, "PUT I/B", bind1, 201, "credentials"),
			alone(asyncBindable, "PUT I/B"+async, bindSlow, 202, "operation"),
			alone(bound, "DELETE I/B?"+ids, "", 200),
			alone(boundAsync, "DELETE I/B"+async+"&"+ids, "", 202, "operation"),
			alone(ready, "DELETE I?"+ids, "", 200),
			alone(readyAsync, "DELETE I"+async+"&"+idsLong, "", 202, "operation"),
		),
		// ORB-01, DEPR-08, NFR-02
		"A21": diesWhileMaking,
		// LOP-10, LOP-13, UNB-02
		"A27": func(r *runOf) {
			ended := httpCase{rule: "LOP-10, LOP-13", asks: "GET I/last_operation", status: 200,
				has: []string{`state="succeeded"`}}
			r.prove(alone(bound, "DELETE I?"+ids, "", 200))
			for range 2 {
				r.prove(ended)
				r.prove(httpCase{rule: "UNB-02", asks: "DELETE I/B?" + ids, status: 410, only: true})
			}
			late := r.another()
			token := late.prove(alone(readyAsync, "DELETE I"+async+"&"+idsLong, "", 202, "operation")).text("operation")
			settled(late, late.base, late.path("I"))
			for range 2 {
				late.prove(httpCase{rule: "LOP-10", asks: "GET I/last_operation?operation=" + token, status: 410, only: true})
				late.prove(ended)
			}
		},
		"A29": func(r *runOf) {
			r.prove(httpCase{asks: "PUT I" + async, body: demoOf("fail", `{"fail":false,"delay_seconds":0}`), status: 202})
			expect.Same(r, "against the plan's setting, it ended", "failed", settled(r, r.base, r.path("I")))
		},
		"A30": func(r *runOf) {
			p := start(r, r.TempDir(), "LONGSHORE_USERNAME=u=v", "LONGSHORE_PASSWORD=a=b=c")
			for password, want := range map[string]int{"a=b=c": 200, "a": 401, "a=b": 401} {
				expect.Same(r, "the password "+password+" is answered", want, login(r, p.url, "u=v", password))
			}
		},
		"A31": func(r *runOf) {
			a := r.prove(alone(ready, "PUT I/B", bind1, 201, "credentials"))
			credentials, _ := a.body["credentials"].(map[string]any)
			uri := expect.Get(url.Parse(fmt.Sprint(credentials["uri"])))(r)
			password, _ := uri.User.Password()
			if uri.User.Username() != credentials["username"] || password != credentials["password"] || uri.Host == "" {
				r.Error("the URL of the credentials says other than its members")
			}
		},
		// CAT-30
		"A34": func(r *runOf) {
			first := r.prove(httpCase{asks: "GET /v2/catalog", status: 200})
			other := newRun(r.T, start(r, r.TempDir(), credentials()...).url, r.values)
			second := other.prove(httpCase{asks: "GET /v2/catalog", status: 200})
			if first.raw != second.raw || first.header.Get("ETag") != second.header.Get("ETag") {
				r.Error("two processes have two catalogs")
			}
			unchanged(other, first.header.Get("ETag"))
		},
		// UNB-08, ORB-01
		"C10": func(r *runOf) {
			r.Run("Alive", func(t *testing.T) { t.Parallel(); givesUpOnABind(t, false) })
			r.Run("Killed", func(t *testing.T) { t.Parallel(); givesUpOnABind(t, true) })
		},
	}
}

const bad, tooLarge = "BadRequest", "RequestTooLarge"

var noBinding = reads("I/B", 404)

// unchanged asks for the catalog again: 304 has no body.
func unchanged(r *runOf, tag string) {
	r.Helper()
	a, _ := ask("GET", r.base+"/v2/catalog", "", map[string]string{"If-None-Match": tag})
	if a.status != http.StatusNotModified || tag == "" || a.raw != "" {
		r.Errorf("CAT-30: tag %q: status %d with %q", tag, a.status, a.raw)
	}
}

// alone is a case of an answer that has these members, and no other.
func alone(g given, asks, body string, status int, has ...string) httpCase {
	return httpCase{given: g, asks: asks, body: body, status: status, has: has, only: true}
}

// diesWhileMaking kills a broker that has made half of an instance.
func diesWhileMaking(r *runOf) {
	data, path, body := r.TempDir(), instancePath("i"), provisionBody(planAsync, `{}`)
	p := start(r, data, credentials("LONGSHORE_DEMO_DELAY=30s")...)
	must(r, p.url, "PUT", path+async, body, 202)
	p.begun(r, path)
	p.kill()
	p = start(r, data, credentials("LONGSHORE_DEMO_DELAY=20ms")...)
	must(r, p.url, "PUT", path+async, body, 200, 202) // the retry finds what runs, or has ended
	removal := must(r, p.url, "DELETE", path+async+"&"+hints(planAsync), "", 202).text("operation")
	p.succeeds(r, path)
	must(r, p.url, "GET", path+"/last_operation?operation="+removal, "", 410)
	must(r, p.url, "PUT", path+async, body, 202) // and the id can be used again
	p.succeeds(r, path)
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
