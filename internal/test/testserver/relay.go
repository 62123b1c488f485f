package testserver

import (
	"io"
	"net"
)

// Relay answers on a listener as the server at an address does, until the listener is closed. Bytes
// of a client go to the writer that sent makes of the connection to the server.
func Relay(l net.Listener, address string, sent func(server io.Writer) io.Writer) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", address)
		if err != nil {
			_ = from.Close()
			continue
		}
		go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		go func() { _, _ = io.Copy(sent(to), from); _ = to.Close() }()
	}
}
