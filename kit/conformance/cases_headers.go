package conformance

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Bodies that most cases begin with.
var (
	provisionBody = body(provision)
	bindBody      = body(bind)
)

// Answers that say that something was made, now or later.
var (
	made    = status(201, 202)
	changed = status(200, 202)
	removed = status(200, 202)
)

// routes are one request of each route of the API, and what a broker offers that
// must serve it.
var routes = []struct {
	name  string
	ask   request
	needs []need
}{
	{"catalog", get(catalog), nil},
	{"provision", set(instance, provisionBody), []need{inCatalog}},
	{"update", patch(instance, members(object{"service_id": "$service"})), []need{updatable}},
	{"deprovision", remove(instance + ids), []need{inCatalog}},
	{"fetch-instance", get(instance), []need{fetchable}},
	{"instance-last-operation", get(instanceOperation), []need{asynchronous}},
	{"bind", set(binding, bindBody), []need{saysBindable}},
	{"unbind", remove(binding + ids), []need{saysBindable}},
	{"fetch-binding", get(binding), []need{saysBindable, bindFetchable}},
	{"binding-last-operation", get(bindingOperation), []need{bindAsync}},
}

func versionCases() []Case {
	var out []Case
	for minor := OldestMinor; minor <= NewestMinor; minor++ {
		id := "HDR-01"
		if minor > OldestMinor {
			id = fmt.Sprintf("HDR-02/2.%d", minor)
		}
		out = append(out, Case{ID: id, Since: minor, Title: fmt.Sprintf("version 2.%d is served, if an older one is", minor),
			story: func(s *scene) { served(s, minor) }})
	}
	speaking := func(id, version string, title string, w want) Case {
		return Case{ID: id, Title: title, steps: []step{{get(catalog).with(versionHeader, version), w}}}
	}
	out = append(out,
		speaking("HDR-03/2.18", "2.18", "the next minor version is served", status(200).has("services", present)),
		speaking("HDR-03/2.99", "2.99", "a much later minor version is served", status(200).has("services", present)),
		speaking("HDR-04/1.0", "1.0", "version 1.0 is refused", status(412)),
		speaking("HDR-04/3.0", "3.0", "version 3.0 is refused", status(412)),
		speaking("HDR-04/0.9", "0.9", "version 0.9 is refused", status(412)),
		speaking("HDR-05/2.8", "2.8", "version 2.8 is refused, or served", status(412, 200)),
		speaking("HDR-05/2.1", "2.1", "version 2.1 is not taken for 2.10", status(412, 200)),
		speaking("HDR-06", "", "a request without a version is refused", status(412, 400)),
		speaking("HDR-07/empty", sentEmpty, "an empty version is refused", status(412, 400)),
	)
	for _, malformed := range []string{"abc", "2", "v2.9", "2.x", "2.9.1", "2.-9", "2.17garbage"} {
		out = append(out, speaking("HDR-07/"+malformed, malformed, "a malformed version is refused", status(412, 400)))
	}
	for _, spelling := range []string{"x-broker-api-version", "X-Broker-Api-Version", "X-BROKER-API-VERSION"} {
		out = append(out, Case{ID: "HDR-08/" + spelling, Title: "the case of the header's name does not matter",
			story: func(s *scene) {
				s.asked(get(catalog).with(versionHeader, "").with(spelling, fmt.Sprintf("2.%d", s.Minor)),
					status(200).has("services", present))
			}})
	}
	for _, route := range routes {
		out = append(out, Case{ID: "HDR-09/" + route.name, Title: "a version that is refused is refused on every route",
			needs: route.needs,
			story: func(s *scene) {
				if a, ok := s.send(get(catalog).with(versionHeader, "3.0")); ok && !s.refused(a, "refuse version 3.0", 200) {
					s.asked(route.ask.with(versionHeader, "3.0"), status(412))
				}
			}})
	}
	return append(out,
		Case{ID: "HDR-07/body", Title: "the version is checked before the body", needs: []need{inCatalog},
			steps: []step{{set(instance, raw("{")).with(versionHeader, "3.0"), status(412)}}},
		Case{ID: "HDR-10", Title: "a binding is never answered 202 before version 2.14", watched: true, given: ready,
			needs:  []need{bindable},
			speaks: 13,
			story: func(s *scene) {
				a, ok := s.send(set(binding+async, bindBody).as(13))
				if ok && s.checked(a, status(201, 422)) && a.status == 201 {
					s.asked(remove(binding+asyncIDs).as(13), status(200))
				}
			}},
	)
}

// served wants a version to be served, if an older one is: minor versions only
// add. A broker need not serve any but its own.
func served(s *scene, minor int) {
	a, ok := s.send(get(catalog).as(minor))
	if !ok {
		return
	}
	for older := OldestMinor; older < minor && a.status == http.StatusPreconditionFailed; older++ {
		if b, ok := s.send(get(catalog).as(older)); ok && b.status == http.StatusOK {
			s.fail(s.Rule(), a.request, fmt.Sprintf("status 200, as version 2.%d has", older), a.String())
			return
		}
	}
	if !s.refused(a, fmt.Sprintf("serve version 2.%d, nor one before it", minor), http.StatusPreconditionFailed) {
		s.checked(a, status(200).has("services", present))
	}
}

func login(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func authenticationCases() []Case {
	var out []Case
	for _, route := range routes {
		out = append(out, Case{ID: "AUTH-01/" + route.name, Title: "no route answers without credentials", needs: route.needs,
			steps: []step{{route.ask.with("Authorization", ""), status(401)}}})
	}
	for _, q := range []struct{ name, value, title string }{
		{"AUTH-02/user", login("longshore-nobody", "longshore-nothing"), "an unknown user is refused"},
		{"AUTH-02/empty", login("", ""), "an empty user and password are refused"},
		{"AUTH-03/text", "Basic !!!", "credentials that are not base64 are refused"},
		{"AUTH-03/alone", "Basic", "a scheme without credentials is refused"},
		{"AUTH-03/colon", "Basic " + base64.StdEncoding.EncodeToString([]byte("nocolon")),
			"credentials without a colon are refused"},
		{"AUTH-03/scheme", "Bearer x", "another scheme is refused"},
	} {
		out = append(out, Case{ID: q.name, Title: q.title,
			steps: []step{{get(catalog).with("Authorization", q.value), status(401)}}})
	}
	return append(out,
		Case{ID: "AUTH-02/password", Title: "a wrong password is refused", story: func(s *scene) {
			for _, password := range []string{"longshore-wrong", "", s.target.Password + "x"} {
				s.asked(get(catalog).with("Authorization", login(s.target.Username, password)), status(401))
			}
		}},
		Case{ID: "AUTH-02/alike", Title: "a wrong password is refused as a wrong user is", story: func(s *scene) {
			user, ok := s.send(get(catalog).with("Authorization", login("longshore-nobody", s.target.Password)))
			a, sent := s.send(get(catalog).with("Authorization", login(s.target.Username, "longshore-wrong")))
			if ok && sent && (a.status != user.status || !same(a.body, user.body)) {
				s.fail("AUTH-02", a.request, "the same answer as to a wrong user", a.String())
			}
		}},
		Case{ID: "AUTH-04", Title: "unknown paths want credentials too",
			steps: []step{{get("/v2/nothing-here").with("Authorization", ""), status(401)}}},
		Case{ID: "AUTH-04/version", Title: "credentials are checked before the version",
			steps: []step{{get(catalog).with("Authorization", "").with(versionHeader, "abc"), status(401)}}},
		Case{ID: "AUTH-05", Title: "the case of the scheme does not matter",
			steps: []step{{get(catalog).with("Authorization", "basic $login"), status(200)}}},
		Case{ID: "AUTH-06", Title: "a 401 names the scheme that is wanted",
			steps: []step{{get(catalog).with("Authorization", ""), status(401).that(func(_ *scene, a response) (string, string) {
				if h := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(strings.ToLower(h), "basic") {
					return "the header WWW-Authenticate with the scheme Basic", fmt.Sprintf("%q", h)
				}
				return "", ""
			})}}},
		Case{ID: "AUTH-07", Title: "what is refused for its credentials changes nothing", needs: []need{inCatalog},
			story: func(s *scene) {
				// That it is refused, and with 401, is AUTH-02.
				a, ok := s.send(set(instance+async, provisionBody).with("Authorization", login("longshore-nobody", "x")))
				if ok && !s.taken(a, "a provision with a wrong password") {
					s.nothingAt(instance)
				}
			}},
	)
}

func identityOf(platform, claims string) string {
	return platform + " " + base64.StdEncoding.EncodeToString([]byte(claims))
}

func identityCases() []Case {
	with := func(id, header, value string, since int, title string, w want) Case {
		return Case{ID: id, Since: since, Title: title, needs: []need{anyPlan},
			steps: []step{{set(instance+async, provisionBody).with(header, value), w}}}
	}
	return []Case{
		with("OID-01/cloudfoundry", identityHeader,
			identityOf("cloudfoundry", `{"user_id":"683ea748-3092-4ff4-b656-39cacc4d5360"}`), 13,
			"an originating identity of Cloud Foundry is accepted", made),
		with("OID-01/kubernetes", identityHeader,
			identityOf("kubernetes", `{"username":"duke","uid":"c2dde242","groups":["admin"],"extra":{"k":["v"]}}`), 13,
			"an originating identity of Kubernetes is accepted", made),
		with("OID-05", identityHeader, identityOf("kubernetes", `{"username":"duke"}`), 13,
			"an identity of another platform than the context's is accepted", made),
		with("OID-03/space", identityHeader, "cloudfoundry", 13, "an identity without a value does no harm",
			status(201, 202, 400)),
		with("OID-03/base64", identityHeader, "cloudfoundry %%%", 13, "an identity that is not base64 does no harm",
			status(201, 202, 400)),
		with("OID-03/object", identityHeader, identityOf("cloudfoundry", "[1]"), 13, "an identity that is no object does no harm",
			status(201, 202, 400)),
		{ID: "OID-04", Since: 13, Title: "a deletion needs no originating identity", given: ready,
			steps: []step{{remove(instance + asyncIDs), removed}}},
		{ID: "RID-01", Since: 15, Title: "the request identity comes back with every answer", watched: true,
			needs: []need{inCatalog},
			story: tour},
		{ID: "RID-03", Since: 15, Title: "no request identity is made up", watched: true,
			steps: []step{{get(catalog).with(requestHeader, ""), anything}, {get(instance).with(requestHeader, ""), anything}}},
		{ID: "RID-04", Since: 15, Title: "a very long request identity does no harm",
			steps: []step{{get(catalog).with(requestHeader, strings.Repeat("x", 8<<10)), status(200, 400, 431)}}},
		with("MISC-01/none", "User-Agent", "", 0, "an empty User-Agent does not matter", made),
		with("MISC-01/any", "User-Agent", "(a) strange/0.1 agent", 0, "a strange User-Agent does not matter", made),
		with("MISC-02", "X-Api-Info-Location", "api.example.com/v2/info", 0, "X-Api-Info-Location does not matter", made),
		with("MISC-03/vcap", "X-Vcap-Request-Id", "7c2b53d1::b1", 0, "X-Vcap-Request-Id does not matter", made),
		with("MISC-03/trace", "X-B3-TraceId", "80f198ee56343ba8", 0, "X-B3-TraceId does not matter", made),
		with("MISC-03/accept", "Accept", "application/json", 0, "Accept does not matter", made),
		{ID: "MISC-04", Since: 14, Title: "every answer is application/json", watched: true,
			needs: []need{inCatalog}, story: tour},
		with("MISC-05/charset", "Content-Type", "application/json; charset=utf-8", 0,
			"a charset in the content type does not matter", made),
		with("MISC-05/none", "Content-Type", "", 0, "a request without a content type is processed, or refused with 400",
			status(201, 202, 400)),
		with("MISC-06", "Content-Type", "application/x-www-form-urlencoded", 0,
			"curl's default content type is processed, or refused with 400",
			status(201, 202, 400)),
		{ID: "MISC-07", Title: "XML is refused with 400", needs: []need{inCatalog},
			steps: []step{{anew(raw("<instance/>")).with("Content-Type", "text/xml"), status(400)}}},
	}
}
