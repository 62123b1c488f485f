package osb

import (
	"bytes"
	"fmt"
	"net"
)

// Listener makes a JSON object of the answers that net/http gives by itself, before any handler
// (ERR-01): to a path with a malformed escape, to headers that are too large, to no HTTP at all.
func Listener(inner net.Listener) net.Listener { return listener{inner} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return conn{tcp}, nil
	}
	return c, err
}

// A conn is a *net.TCPConn: net/http uses more of it than net.Conn has.
type conn struct{ *net.TCPConn }

// plainHeaders stand in every answer that net/http makes by itself, and in
// none of a Server's. Such an answer is written in one piece.
var plainHeaders = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

func (c conn) Write(p []byte) (int, error) {
	line, _, plain := bytes.Cut(p, plainHeaders)
	if !plain || !bytes.HasPrefix(line, []byte("HTTP/1.")) || bytes.Contains(line, []byte("\r\n")) {
		return c.TCPConn.Write(p)
	}
	const body = `{"error":"BadRequest",` +
		`"description":"The request is not valid HTTP, or its path is not valid percent-encoded text."}` + "\n"
	_, err := fmt.Fprintf(c.TCPConn,
		"%s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		line, len(body),
		body)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}
