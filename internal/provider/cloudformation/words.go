package cloudformation

import (
	"regexp"
	"strings"
)

// cancelled matches the reason of a resource that failed only because another one did. consequent
// matches the reason that a stack gives for such a failure.
var (
	cancelled  = regexp.MustCompile(`(?i)(creation|update|deletion) (was )?cancell?ed`)
	consequent = regexp.MustCompile(`(?i)following resource|user initiated|^$`)
)

// telling reports whether an event says why something failed.
func telling(e event) bool {
	return !cancelled.MatchString(e.reason) && !(e.whole && consequent.MatchString(e.reason))
}

// protection matches messages that forbid the deletion of a thing.
var protection = regexp.MustCompile(`(?i)(deletion|termination) ?protection`)

const textSettings = "AWS does not accept its settings. Check the parameters, or ask the operator of the service."

// causes holds common reasons, in a developer's words. The original reason is for the log alone: it
// contains account ids, ARNs and names of the operator. The first match counts. Reasons also
// contain names of properties, such as VisibilityTimeout, so a pattern must be more than a part of
// a word.
var causes = []struct {
	reason string // a pattern, compiled only when something has failed
	words  string
}{
	{`(?i)not authorized|access ?denied|unauthorized|forbidden|explicit deny`,
		"the service's account does not allow it. Ask the operator of the service."},
	{`(?i)failed to satisfy constraint|Model validation failed|invalid (value|parameter)|` +
		`\bfor (the )?(parameter|property|attribute)\b.* is (invalid|not valid)|` +
		`must be (between|one of|less|greater|at (least|most))`,
		textSettings},
	{`(?i)(limit|quota).*(exceed|reach)|(exceed|reach).*(limit|quota)|LimitExceeded|too many`,
		"a limit of the service's account is reached. Ask the operator of the service to raise it."},
	{`(?i)throttl|rate exceeded|slow ?down`, "AWS received too many requests at once. Try again later."},
	{`(?i)not empty|BucketNotEmpty`, "it is not empty. Remove what is in it, and try again."},
	{protection.String(),
		"it is protected against deletion. Take the protection away, or ask the operator of the service."},
	{`(?i)already exists|AlreadyExists|AlreadyOwned`,
		"one of that name is there already. Try again, or ask the operator of the service."},
	{`(?i)\btimed[ -]?out\b|\btime[ -]?out\b|\bexceeded attempts|\btime\b.*\bexceeded|stabiliz`,
		"it was not ready in time. Try again."},
	{`(?i)insufficient\w*capacity|\b(insufficient|sufficient|enough|no)\b.*\bcapacity\b|\bcapacity\b.*(available|zone)|` +
		`not available in|unsupported.*(zone|region)`,
		"AWS has no capacity for it at the moment. Try again later, or choose another plan."},
	{`(?i)invalid|malformed|validation|must (be|not|have|match)|not valid|constraint|InvalidRequest|one of`,
		textSettings},
	{`(?i)does not exist|not ?found|no such`, "something that it needs is not there. Ask the operator of the service."},
	{`(?i)internal|service unavailable|5\d\d`, "AWS had a fault. Try again later."},
}

// words returns what has failed and what can be done, for a developer. It discloses nothing about
// the account.
func words(e event) string {
	what := "The resource " + e.logical
	if e.whole {
		what = "It"
	}
	if _, kind, ok := strings.Cut(e.kind, "::"); ok && !e.whole && strings.HasPrefix(e.kind, "AWS::") {
		what += " (" + strings.ReplaceAll(kind, "::", " ") + ")"
	}
	verb, _, _ := strings.Cut(strings.ToLower(e.status), "_")
	done := map[string]string{"create": "made", "update": "changed", "delete": "removed"}[verb]
	if done == "" {
		done = "made as wanted"
	}
	for _, c := range causes {
		if regexp.MustCompile(c.reason).MatchString(e.reason) {
			return what + " could not be " + done + ": " + c.words
		}
	}
	return what + " could not be " + done + ". Ask the operator of the service, whose log says why."
}
