package conformance

import "testing"

// Instants are compared as times: their fractions may have any number of digits.
func TestInstantsAreNoTexts(t *testing.T) {
	for name, c := range map[string]struct {
		reason        string
		renew, expire string
		well          bool
	}{
		"SameInstant": {"one text is not the other, and the time is the same", "2030-01-31T23:59:59.5Z",
			"2030-01-31T23:59:59.50Z", true},
		"LaterDigits": {"a longer fraction is not a later time", "2030-01-31T23:59:59.1Z", "2030-01-31T23:59:59.10Z", true},
		"Before":      {"a renewal comes before the end", "2030-01-31T23:59:59.0Z", "2030-02-01T00:00:00.0Z", true},
		"After":       {"a renewal after the end is found", "2030-01-31T23:59:59.51Z", "2030-01-31T23:59:59.5Z", false},
		"NoSuchDay":   {"what is no time is found", "2030-02-31T23:59:59.0Z", "2030-03-31T23:59:59.0Z", false},
		"NoFraction":  {"the pattern has a fraction", "2030-01-31T23:59:59Z", "2030-01-31T23:59:59.0Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			grant := object{"metadata": object{"renew_before": c.renew, "expires_at": c.expire}}
			if wanted, _ := expiry(nil, response{body: grant}); (wanted == "") != c.well {
				t.Errorf("%s: wanted %q", c.reason, wanted)
			}
		})
	}
}
