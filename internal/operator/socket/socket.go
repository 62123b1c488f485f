// Package socket lets the commands of an operator reach the broker that runs on a data folder: JSON
// over HTTP, on a Unix socket that only the folder's owner can open. It does not know the methods
// that it carries, and streams backups.
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

// longestPath is the longest path of a socket that all systems allow, in bytes.
const longestPath = 100

// largestCall bounds the argument of a method, in bytes.
const largestCall = 1 << 20

// The paths of the socket: one for each method, and one for the call whose answer is a file.
const (
	pathCall   = "/call/"
	pathBackup = "/backup"
)

// trailerEnd is the trailer of a backup, which holds its outcome as quoted JSON. A backup without
// the trailer was cut off.
const trailerEnd = "Longshore-End"

// stalled is how long the reader of a backup may take nothing. A reader that stalls for ever would fill the disk: until
// the backup has ended, the server in the folder keeps its whole log of changes.
const stalled = 5 * time.Minute

// A Save writes the backup that a wish describes.
type Save func(ctx context.Context, wish backup.Wish, to io.Writer) error

// An outcome is the result of a call in the form in which the socket carries it.
type outcome struct {
	Out json.RawMessage `json:"out,omitempty"`
	// Refused and Failed are the error; Refused is a refusal, which says what to do.
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

// A Server answers the commands of operators.
type Server struct {
	server   *http.Server
	listener net.Listener
}

// Listen answers on a socket at the given path. If the socket cannot be made, the broker runs
// without it: the log says so, and the server is nil. Now is the machine's clock.
func Listen(path string, link operator.Link, save Save, now func() time.Time, log *slog.Logger) *Server {
	if len(path) > longestPath {
		log.Warn("operators' commands cannot reach this broker while it runs: " +
			"the path of its data folder is too long for a socket")
		return nil
	}
	_ = os.Remove(path) // left by a process that died: the folder is ours
	listener, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		log.Warn("operators' commands cannot reach this broker while it runs", "error", err)
		return nil
	}
	until := func() time.Time { return now().Add(stalled) }
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathCall+"{method}", func(w http.ResponseWriter, r *http.Request) { call(w, r, link) })
	mux.HandleFunc("POST "+pathBackup, func(w http.ResponseWriter, r *http.Request) { stream(w, r, save, until) })
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
	_ = json.NewEncoder(w).Encode(outcomeOf(out, err)) // the operator may be gone
}

func stream(w http.ResponseWriter, r *http.Request, save Save, until func() time.Time) {
	var wish backup.Wish
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestCall)).Decode(&wish)
	w.Header().Set("Trailer", trailerEnd)
	to := patient{w, http.NewResponseController(w), until}
	if err == nil {
		err = save(r.Context(), wish, to)
	}
	// The outcome may come long after the last write.
	to.renew()
	raw, _ := json.Marshal(outcomeOf(nil, err)) // strings can always be encoded
	w.Header().Set(trailerEnd, strconv.QuoteToASCII(string(raw)))
}

// A patient writer fails once its reader has stalled.
type patient struct {
	http.ResponseWriter
	on    *http.ResponseController
	until func() time.Time // when the reader has stalled
}

func (p patient) renew() { _ = p.on.SetWriteDeadline(p.until()) } // the connection may be gone

// Write implements io.Writer.
func (p patient) Write(b []byte) (int, error) {
	p.renew()
	return p.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (p patient) Flush() {
	p.renew()
	_ = p.on.Flush()
}

// Close ends the server. It accepts a nil Server.
func (s *Server) Close() {
	if s != nil {
		_ = s.listener.Close() // also removes the socket, even if the server has not taken it over yet
		_ = s.server.Close()
	}
}

// A Client asks a running broker.
type Client struct {
	client *http.Client
	dial   func(ctx context.Context, _, _ string) (net.Conn, error)
}

// Dial makes a client of the broker that listens at the path. It does not connect yet.
func Dial(path string) Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return Client{dial: dial, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}}
}

// Answers reports whether a broker runs: it accepts the connection, whatever it then answers. If a broker
// that once answered with a fault were not asked, it would seem to be another process that holds the folder.
func (c Client) Answers(ctx context.Context) bool {
	conn, err := c.dial(ctx, "", "")
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Call is an operator.Link to the broker.
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

// Backup has the broker write the backup that a wish describes.
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
	if _, err := io.Copy(to, received{response.Body}); err != nil {
		return err
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

// A received body says of its errors that the broker's answer broke off: a copy may also fail where it is written.
type received struct{ io.Reader }

// Read implements io.Reader.
func (r received) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("the running broker's answer was cut off: %w", err)
	}
	return n, err
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
