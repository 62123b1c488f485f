// Package socket lets the commands of an operator reach the broker that runs on a data
// folder: JSON over HTTP, on a Unix socket that only the folder's owner can open. It knows
// none of the methods that are called, and streams backups.
package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/backup"
)

// longestPath is what all systems allow for the path of a socket, in bytes.
const longestPath = 100

// largestCall bounds what a method is called with, in bytes.
const largestCall = 1 << 20

// The paths of the socket: each method by its name, and the one call whose answer is a file.
const (
	pathCall   = "/call/"
	pathBackup = "/backup"
)

// trailerEnd is the trailer of a backup: its outcome, as quoted JSON. A backup that lacks it
// was cut off.
const trailerEnd = "Longshore-End"

// A Save writes a backup of what is wished for.
type Save func(ctx context.Context, wish backup.Wish, to io.Writer) error

// An outcome is what a call came to, on its way through the socket.
type outcome struct {
	Out json.RawMessage `json:"out,omitempty"`
	// Refused and Failed are the error, of which the first says what to do.
	Refused string   `json:"refused,omitempty"`
	Failed  []string `json:"failed,omitempty"`
}

func outcomeOf(out json.RawMessage, err error) outcome {
	if refusal, ok := errors.AsType[*operator.Refusal](err); ok {
		return outcome{Out: out, Refused: refusal.Message}
	}
	o := outcome{Out: out}
	for _, fault := range operator.Faults(err) {
		o.Failed = append(o.Failed, fault.Error())
	}
	return o
}

func (o outcome) err() error {
	if o.Refused != "" {
		return &operator.Refusal{Message: o.Refused}
	}
	var faults []error
	for _, text := range o.Failed {
		faults = append(faults, errors.New(text))
	}
	return errors.Join(faults...)
}

// A Server answers operators.
type Server struct {
	server   *http.Server
	listener net.Listener
}

// Listen answers on a socket of that path. If it cannot be made, the broker runs without:
// the log says so, and the server is nil.
func Listen(path string, link operator.Link, save Save, log *slog.Logger) *Server {
	if len(path) > longestPath {
		log.Warn("operators' commands cannot reach this broker while it runs: " +
			"the path of its data folder is too long for a socket")
		return nil
	}
	_ = os.Remove(path) // of a process that died: the folder is ours
	listener, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		log.Warn("operators' commands cannot reach this broker while it runs", "error", err)
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathCall+"{method}", func(w http.ResponseWriter, r *http.Request) { call(w, r, link) })
	mux.HandleFunc("POST "+pathBackup, func(w http.ResponseWriter, r *http.Request) { stream(w, r, save) })
	s := &Server{server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener: listener}
	go func() { _ = s.server.Serve(listener) }()
	return s
}

func call(w http.ResponseWriter, r *http.Request, link operator.Link) {
	method := r.PathValue("method")
	if !operator.Knows(method) {
		http.NotFound(w, r)
		return
	}
	in, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestCall))
	var out json.RawMessage
	if err == nil {
		out, err = link(r.Context(), method, in)
	}
	_ = json.NewEncoder(w).Encode(outcomeOf(out, err)) // the operator may have gone
}

func stream(w http.ResponseWriter, r *http.Request, save Save) {
	var wish backup.Wish
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestCall)).Decode(&wish)
	w.Header().Set("Trailer", trailerEnd)
	if err == nil {
		err = save(r.Context(), wish, w)
	}
	raw, _ := json.Marshal(outcomeOf(nil, err)) // texts
	w.Header().Set(trailerEnd, strconv.QuoteToASCII(string(raw)))
}

// Close ends it; a nil one needs no end.
func (s *Server) Close() {
	if s != nil {
		_ = s.listener.Close() // removes the socket, also before the server has taken it over
		_ = s.server.Close()
	}
}

// A Client asks a running broker.
type Client struct {
	client *http.Client
	dial   func(ctx context.Context, _, _ string) (net.Conn, error)
}

// Dial makes a client of the broker that listens at the path, if one does.
func Dial(path string) Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return Client{dial: dial, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}}
}

// Answers reports whether a broker runs: it takes the connection, whatever it then
// answers. A broker that is asked nothing because it once answered with a fault would
// seem to be another process that holds the folder.
func (c Client) Answers(ctx context.Context) bool {
	conn, err := c.dial(ctx, "", "")
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Call is the operator.Link to the broker.
func (c Client) Call(ctx context.Context, method string, in json.RawMessage) (json.RawMessage, error) {
	response, err := c.post(ctx, pathCall+method, in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var o outcome
	if err := json.NewDecoder(response.Body).Decode(&o); err != nil {
		return nil, fmt.Errorf("asking the running broker: %w", err)
	}
	return o.Out, o.err()
}

// Backup has the broker save what is wished for.
func (c Client) Backup(ctx context.Context, wish backup.Wish, to io.Writer) error {
	in, err := json.Marshal(wish)
	if err != nil {
		return err
	}
	response, err := c.post(ctx, pathBackup, in)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("the running broker's answer was cut off: %w", err)
	}
	var o outcome
	text, err := strconv.Unquote(response.Trailer.Get(trailerEnd))
	if err == nil {
		err = json.Unmarshal([]byte(text), &o)
	}
	if err != nil {
		return errors.New("the running broker's answer was cut off: look at its log")
	}
	return o.err()
}

func (c Client) post(ctx context.Context, path string, in []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://broker"+path, bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the running broker: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the running broker does not know %q: it is of another version", filepath.Base(path))
	}
	return response, nil
}
