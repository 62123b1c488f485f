package testserver

import (
	"net/http"
	"net/http/httputil"
	"net/url"
)

// OverTLS is a gateway before an emulated AWS that serves plain HTTP: it says that TLS
// ends there, so that policies which refuse everything else let calls through it pass.
func OverTLS(to string) (http.Handler, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // which is signed
		r.Out.Header.Set("X-Forwarded-Proto", "https")
	}}, nil
}
