package compile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

func TestLoadHidesTheClientSecret(t *testing.T) {
	const secret = "canary-5b2f"
	client := "dashboard_client:\n  id: [" + secret + "]\n  secret: " + secret + "\n  redirect_ur: " + secret + "\n"
	_, err := load(map[string]string{"a/offering.yaml": sound + client})
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a file's secret must not reach an error: Load(...): %v", err)
	}

	o := expect.Get(load(map[string]string{"a/offering.yaml": sound + "dashboard_client: {id: client, secret: " + secret +
		", redirect_uri: \"https://example.com\"}\n"}))(t).Offerings()[0]
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		expect.Never(t, "formatted by "+verb, fmt.Sprintf(verb, o.DashboardClient)+fmt.Sprintf(verb, o), secret)
	}
}

func TestCatalogJSON(t *testing.T) {
	const shared = `"description":"d","metadata":{"bullets":["b"],"costs":[{"amount":{"usd":9.5},"unit":"MONTHLY"}]},` +
		`"free":false,"bindable":true,"plan_updateable":false,"binding_rotatable":true,"maximum_polling_duration":3600,` +
		`"maintenance_info":{"version":"1.0.0-rc.1+build.5","description":"d"},`
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Least": {"CAT-27: what is absent is omitted, never null; bindable is always there (CAT-02).",
			spoil(map[int]string{5: "bindable: false\ntags: []\nmetadata: {}", 6: "", 11: "", 12: "", 13: ""}),
			`{"id":"offering-1","name":"one","description":"The first","bindable":false,` +
				`"plans":[{"id":"plan-1","name":"small","description":"The small one"}]}`},
		"Most": {"Every member has the specification's name; false is emitted where it overrides (CAT-14 to CAT-16); the " +
			"broker's own stay inside.", `id: o
name: one
description: d
provider: demo
tags: [a, b]
requires: [syslog_drain]
bindable: true
instances_retrievable: true
bindings_retrievable: true
allow_context_updates: true
plan_updateable: true
metadata: {displayName: One, deep: {list: [1, 2.5, true, text, 2020-01-01]}}
dashboard_client: {id: c, secret: s, redirect_uri: "https://example.com"}
plans:
- &first
  id: p
  name: small
  description: d
  free: false
  bindable: true
  plan_updateable: false
  binding_rotatable: true
  maximum_polling_duration: 3600
  typical_duration: 60
  restore_parameter: restore_from
  maintenance_info: {version: 1.0.0-rc.1+build.5, description: d}
  metadata: {costs: [{amount: {usd: 9.5}, unit: MONTHLY}], bullets: [b]}
  asynchronous: required
  asynchronous_binding: allowed
  requires_app: true
  settings: {size: 5, none: ~}
  schemas:
    service_instance:
      create:
        parameters:
          $schema: http://json-schema.org/draft-07/schema#
          type: object
          properties:
            n: {maximum: 123456789012345678901234567890, enum: [~, 1.50]}
- <<: *first
  id: q
  name: large
  schemas: {service_binding: {create: {parameters: {$schema: "https://json-schema.org/draft/2020-12/schema", type: object}}}}
`, `{"id":"o","name":"one","description":"d","tags":["a","b"],"requires":["syslog_drain"],"bindable":true,` +
			`"instances_retrievable":true,"bindings_retrievable":true,"allow_context_updates":true,` +
			`"metadata":{"deep":{"list":[1,2.5,true,"text","2020-01-01"]},"displayName":"One"},` +
			`"dashboard_client":{"id":"c","secret":"s","redirect_uri":"https://example.com"},"plan_updateable":true,"plans":[` +
			`{"id":"p","name":"small",` + shared +
			`"schemas":{"service_instance":{"create":{"parameters":{"$schema":"http://json-schema.org/draft-07/schema#",` +
			`"properties":{"n":{"enum":[null,1.50],"maximum":123456789012345678901234567890}},"type":"object"}}}}},` +
			`{"id":"q","name":"large",` + shared +
			`"schemas":{"service_binding":{"create":{"parameters":{` +
			`"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}}}}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := expect.Get(load(map[string]string{"a/offering.yaml": tc.text}))(t, tc.reason)
			expect.Same(t, tc.reason+"\nJSON", tc.want, string(expect.Get(json.Marshal(c.Offerings()[0]))(t)))
		})
	}
}
