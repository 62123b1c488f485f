package osb

import (
	"bytes"
	"fmt"
	"net"
)

// Listener wraps a listener so that the answers which net/http gives itself, before any handler
// runs, have a JSON object as their body (ERR-01): to a path with a malformed escape, to headers
// that are too large, to something that is not HTTP.
func Listener(inner net.Listener) net.Listener { return listener{inner} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return conn{c}, err
}

type conn struct{ net.Conn }

// plainHeaders stand in every answer that net/http gives itself, and in no answer of a Server.
// net/http writes such an answer in one piece.
var plainHeaders = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

func (c conn) Write(p []byte) (int, error) {
	line, _, plain := bytes.Cut(p, plainHeaders)
	if !plain || !bytes.HasPrefix(line, []byte("HTTP/1.")) || bytes.Contains(line, []byte("\r\n")) {
		return c.Conn.Write(p)
	}
	const body = `{"error":"BadRequest",` +
		`"description":"The request is not valid HTTP, or its path is not valid percent-encoded text."}` + "\n"
	_, err := fmt.Fprintf(c.Conn,
		"%s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		line, len(body),
		body)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}
