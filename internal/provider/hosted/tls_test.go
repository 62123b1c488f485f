package hosted_test

import (
	"encoding/json"
	"testing"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
)

// An access that says nothing of TLS is verified, whoever made it; one that says what there is not is refused.
func TestTLSIsVerifiedUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	var a hosted.Access
	if err := json.Unmarshal([]byte(`{"host":"h"}`), &a); err != nil || a.TLS != hosted.TLSVerify {
		t.Errorf("an access without TLS is %v: %v", a.TLS, err)
	}
	for name, tc := range map[string]struct {
		tls               hosted.TLS
		ca                string
		fails, plain, any bool
	}{
		"Unsaid":  {},
		"Require": {tls: hosted.TLSRequire, any: true},
		"Disable": {tls: hosted.TLSDisable, plain: true},
		"CA":      {ca: newAuthority(t)},
		"NoCA":    {ca: "none", fails: true},
	} {
		a := hosted.Access{Host: "h", TLS: tc.tls, CA: tc.ca}
		c, err := a.TLSConfig()
		if (err != nil) != tc.fails || err == nil && (c == nil) != tc.plain {
			t.Errorf("%s: %v: %v", name, c, err)
		}
		if c != nil && (c.InsecureSkipVerify != tc.any || c.ServerName != "h" || (c.RootCAs != nil) != (tc.ca != "")) {
			t.Errorf("%s: verifies nothing: %v, by the name %q, by roots of its own: %v", name, c.InsecureSkipVerify, c.ServerName,
				c.RootCAs != nil)
		}
		var again hosted.TLS
		expect.OK(t, json.Unmarshal(expect.Get(json.Marshal(a.TLS))(t), &again), name)
		expect.Same(t, name+" is read as", a.TLS, again)
	}
	for _, wrong := range []string{`""`, `"prefer"`, `"allow"`, `1`} {
		var a hosted.TLS
		if err := json.Unmarshal([]byte(wrong), &a); err == nil {
			t.Errorf("%s is read as %v", wrong, a)
		}
	}
}
