package conformance

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Answers that say that something was made, changed or removed, now or later.
var (
	made    = status(201, 202)
	changed = status(200, 202)
	removed = status(200, 202)
)

// routes has one request for each route of the API, with the features of a broker that oblige it to serve the route.
var routes = []struct {
	name  string
	ask   request
	needs needs
}{
	{"catalog", get(catalog), nil},
	{"provision", provisionAtOnce, needs{inCatalog}},
	{"update", patch(instance, update), needs{updatable}},
	{"deprovision", remove(instance + ids), needs{inCatalog}},
	{"fetch-instance", get(instance), needs{fetchable}},
	{"instance-last-operation", get(instanceOperation), needs{asynchronous}},
	{"bind", set(binding, bind), needs{saysBindable}},
	{"unbind", remove(binding + ids), needs{saysBindable}},
	{"fetch-binding", get(binding), needs{saysBindable, bindFetchable}},
	{"binding-last-operation", get(bindingOperation), needs{bindAsync}},
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
		return Case{ID: id, Title: title, ask: get(catalog).with(versionHeader, version), want: w}
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
		Case{ID: "HDR-07/body", Title: "the version is checked before the body", needs: needs{inCatalog},
			ask: set(instance, raw("{")).with(versionHeader, "3.0"), want: status(412)},
		Case{ID: "HDR-10", Title: "a binding is never answered 202 before version 2.14", watched: true, given: ready,
			needs: needs{bindable}, speaks: 13, story: func(s *scene) {
				a, ok := s.send(toBind(bind).as(13))
				if ok && s.checked(a, status(201, 422)) && a.status == 201 {
					s.asked(toUnbind.as(13), status(200))
				}
			}},
	)
}

// served wants a version to be served if an older one is: minor versions only add. A broker may
// serve its own version alone.
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
			ask: route.ask.with("Authorization", ""), want: status(401)})
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
			ask: get(catalog).with("Authorization", q.value), want: status(401)})
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
		Case{ID: "AUTH-04", Title: "unknown paths want credentials too", ask: get("/v2/nothing-here").with("Authorization", ""),
			want: status(401)},
		Case{ID: "AUTH-04/version", Title: "credentials are checked before the version",
			ask: get(catalog).with("Authorization", "").with(versionHeader, "abc"), want: status(401)},
		Case{ID: "AUTH-05", Title: "the case of the scheme does not matter",
			ask: get(catalog).with("Authorization", "basic $login"), want: status(200)},
		Case{ID: "AUTH-06", Title: "a 401 names the scheme that is wanted", ask: get(catalog).with("Authorization", ""),
			want: status(401).that(func(_ *scene, a response) (string, string) {
				if h := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(strings.ToLower(h), "basic") {
					return "the header WWW-Authenticate with the scheme Basic", fmt.Sprintf("%q", h)
				}
				return "", ""
			})},
		Case{ID: "AUTH-07", Title: "what is refused for its credentials changes nothing", needs: needs{inCatalog},
			story: func(s *scene) {
				// AUTH-02 is about the refusal itself, with 401.
				a, ok := s.send(toProvision(provision).with("Authorization", login("longshore-nobody", "x")))
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
		return Case{ID: id, Since: since, Title: title, needs: needs{anyPlan},
			ask: toProvision(provision).with(header, value), want: w}
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
		{ID: "OID-04", Since: 13, Title: "a deletion needs no originating identity", given: ready, ask: toDeprovision,
			want: removed},
		{ID: "RID-01", Since: 15, Title: "the request identity comes back with every answer", watched: true},
		{ID: "RID-03", Since: 15, Title: "no request identity is made up", watched: true,
			steps: []step{{get(catalog).with(requestHeader, ""), anything}, {get(instance).with(requestHeader, ""), anything}}},
		{ID: "RID-04", Since: 15, Title: "a very long request identity does no harm",
			ask: get(catalog).with(requestHeader, strings.Repeat("x", 8<<10)), want: status(200, 400, 431)},
		with("MISC-01/none", "User-Agent", "", 0, "an empty User-Agent does not matter", made),
		with("MISC-01/any", "User-Agent", "(a) strange/0.1 agent", 0, "a strange User-Agent does not matter", made),
		with("MISC-02", "X-Api-Info-Location", "api.example.com/v2/info", 0, "X-Api-Info-Location does not matter", made),
		with("MISC-03/vcap", "X-Vcap-Request-Id", "7c2b53d1::b1", 0, "X-Vcap-Request-Id does not matter", made),
		with("MISC-03/trace", "X-B3-TraceId", "80f198ee56343ba8", 0, "X-B3-TraceId does not matter", made),
		with("MISC-03/accept", "Accept", "application/json", 0, "Accept does not matter", made),
		{ID: "MISC-04", Since: 14, Title: "every answer is application/json", watched: true},
		with("MISC-05/charset", "Content-Type", "application/json; charset=utf-8", 0,
			"a charset in the content type does not matter", made),
		with("MISC-05/none", "Content-Type", "", 0, "a request without a content type is processed, or refused with 400",
			status(201, 202, 400)),
		with("MISC-06", "Content-Type", "application/x-www-form-urlencoded", 0,
			"curl's default content type is processed, or refused with 400", status(201, 202, 400)),
		{ID: "MISC-07", Title: "XML is refused with 400", needs: needs{inCatalog},
			ask: toProvision(raw("<instance/>")).with("Content-Type", "text/xml"), want: status(400)},
	}
}
