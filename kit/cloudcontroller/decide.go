package cloudcontroller

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// A verdict is the platform's conclusion from an answer.
type verdict struct {
	done     bool
	accepted bool   // the operation is to be polled
	mitigate bool   // a possible orphan is to be deleted
	problem  string // describes a fault of the answer; empty if the broker's own text says it
}

// judge decides by the status, the shape of the body and the version (ORP-01). It has every row of
// the orphan table; a status that no row names is treated like a 5xx, as from a broker that does
// not know what it did. Requires are the permissions of the service that is bound (SIM-14).
func judge(k Kind, minor int, a response, requires []string) verdict {
	shape := a.shape(k, requires)
	// From 2.15 on, failed deletions are repeated like those of orphans, as the platform reads the specification.
	again := k.creates() || k.deletes() && minor >= 15
	malformed := "The broker's answer cannot be understood: " + shape
	switch s := a.status; {
	case s == 0 && a.unreachable: // the request has reached nobody
		return verdict{problem: "The broker cannot be reached: " + a.fault}
	case s == 0:
		return verdict{mitigate: k.creates(), problem: "The broker did not answer in time: " + a.fault}
	case s == http.StatusOK && shape != "":
		return verdict{problem: malformed}
	case s == http.StatusOK, s == http.StatusGone && k.deletes():
		return verdict{done: true}
	case s == http.StatusCreated && k.creates() && shape == "":
		return verdict{done: true}
	case s == http.StatusAccepted && k.follows(minor) && shape == "":
		return verdict{accepted: true}
	case s == http.StatusCreated && k.creates(), s == http.StatusAccepted && k.follows(minor):
		return verdict{mitigate: k.creates(), problem: malformed}
	case s == http.StatusRequestTimeout:
		return verdict{mitigate: k.creates() && minor < 14}
	case 400 <= s && s < 500:
		return verdict{}
	case 200 <= s && s < 300:
		return verdict{mitigate: again, problem: fmt.Sprintf("The broker answered %d, which means nothing here.", s)}
	default:
		return verdict{mitigate: again}
	}
}

// maxToken is the longest operation token (PROV-25).
const maxToken = 10000

// shape says what is wrong with the body of a successful answer; empty if nothing is.
func (a response) shape(k Kind, requires []string) string {
	if a.body == nil {
		return "the body is not a JSON object"
	}
	if t := a.body["operation"]; t != nil {
		if token, ok := t.(string); !ok || len(token) > maxToken {
			return "operation is not a text of at most 10000 characters"
		}
	}
	if u := a.body["dashboard_url"]; u != nil {
		if _, ok := u.(string); !ok {
			return "dashboard_url is not a text"
		}
	}
	if k != Bind || a.status == http.StatusAccepted {
		return ""
	}
	return grantShape(a.body, requires)
}

// grantShape says what is wrong with a grant; empty if nothing is.
func grantShape(body map[string]any, requires []string) string {
	if c := body["credentials"]; c != nil {
		if _, ok := c.(map[string]any); !ok {
			return "credentials is not an object"
		}
	}
	for _, m := range [][2]string{{"syslog_drain_url", "syslog_drain"}, {"route_service_url", "route_forwarding"},
		{"volume_mounts", "volume_mount"}} {
		if v := body[m[0]]; v != nil && !slices.Contains(requires, m[1]) {
			if list, ok := v.([]any); ok && len(list) == 0 {
				continue
			}
			return fmt.Sprintf("%s comes from a service that does not require %s", m[0], m[1])
		}
	}
	return ""
}

// failure returns the failure that the user is shown for an answer (SIM-18).
func (a response) failure(k Kind, v verdict) *Failure {
	return &Failure{Kind: k, Status: a.status, Code: a.text("error"), Description: cmp.Or(v.problem, a.text("description"),
		fmt.Sprintf("The broker answered %d and did not say why.", a.status))}
}

// object decodes a JSON object; it returns nil for anything else.
func object(raw []byte) map[string]any {
	var out map[string]any
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}
