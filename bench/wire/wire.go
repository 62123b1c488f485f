// Package wire is what the two brokers of the benchmark have in common: the requests, the
// credentials, and the HTTP server around the handler. It knows neither of the brokers.
package wire

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// The login of platforms.
const (
	Username = "platform"
	Password = "bench-password-51c7"
)

// The ids of the demo's plan async, which never change once they are published.
const (
	Service = "f95c6dc5-becc-415a-96b6-c5997d1a68fe"
	Plan    = "4dcb3699-4e64-40fe-aa3b-ec0d58a96028"
)

// A Shot is a request, with the status that its answer must have.
type Shot struct {
	Method, Path, Body string
	Want               int
}

// Catalog fetches the catalog.
func Catalog() Shot { return Shot{Method: http.MethodGet, Path: "/v2/catalog", Want: http.StatusOK} }

// Provision creates an instance of the plan async, whose operation stays in progress for a day.
func Provision(id string) Shot {
	const body = `{"service_id":"` + Service + `","plan_id":"` + Plan + `",` +
		`"organization_guid":"2c9b3a1e-2f61-4d5c-9a52-5f2f7c1d0001","space_guid":"2c9b3a1e-2f61-4d5c-9a52-5f2f7c1d0002",` +
		`"context":{"platform":"cloudfoundry","organization_guid":"2c9b3a1e-2f61-4d5c-9a52-5f2f7c1d0001",` +
		`"organization_name":"bench",` +
		`"space_guid":"2c9b3a1e-2f61-4d5c-9a52-5f2f7c1d0002","space_name":"dev","instance_name":"mine"},` +
		`"parameters":{"delay_seconds":86400},"maintenance_info":{}}`
	return Shot{Method: http.MethodPut, Path: "/v2/service_instances/" + id + "?accepts_incomplete=true", Body: body,
		Want: http.StatusAccepted}
}

// LastOperation polls the operation of an instance as platforms do: with the token of the 202, and both ids.
func LastOperation(id, token string) Shot {
	return Shot{
		Method: http.MethodGet, Want: http.StatusOK,
		Path: "/v2/service_instances/" + id + "/last_operation?operation=" + url.QueryEscape(token) + "&plan_id=" + Plan +
			"&service_id=" +
			Service,
	}
}

// head has the headers that Cloud Controller sends.
var head = "Host: broker\r\nAccept: application/json\r\nUser-Agent: bench\r\n" +
	"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(Username+":"+Password)) + "\r\n" +
	"X-Broker-Api-Version: 2.17\r\n" +
	"X-Broker-Api-Originating-Identity: cloudfoundry " +
	base64.StdEncoding.EncodeToString([]byte(`{"user_id":"683ea748-3092-4ff4-b656-39cacc4d5360"}`)) + "\r\n" +
	"X-Broker-Api-Request-Identity: b1a7a2b0-6f43-4d0e-9f0e-5a2f3f1c0003\r\n" +
	"X-Vcap-Request-Id: b1a7a2b0-6f43-4d0e-9f0e-5a2f3f1c0003\r\n"

// Bytes returns the request as it is sent.
func (s Shot) Bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n%s", s.Method, s.Path, head)
	if s.Body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(s.Body))
	}
	b.WriteString("\r\n" + s.Body)
	return b.Bytes()
}

// Request returns the request as a handler gets it from the server of net/http.
func (s Shot) Request() (*http.Request, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(s.Bytes())))
	if err != nil {
		return nil, fmt.Errorf("making the request %s %s: %w", s.Method, s.Path, err)
	}
	r.RemoteAddr = "127.0.0.1:9"
	if s.Body != "" {
		r.Body = io.NopCloser(strings.NewReader(s.Body))
	}
	return r, nil
}

// Log returns a broker's log: text, as that of `longshore serve`.
func Log(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// Serve runs a handler in a server with the settings of `longshore serve`, until the process is killed.
func Serve(listen string, wrap func(net.Listener) net.Listener, h http.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, DisableGeneralOptionsHandler: true,
		ErrorLog: slog.NewLogLogger(Log(os.Stderr).Handler(), slog.LevelWarn),
	}
	return server.Serve(wrap(l))
}
