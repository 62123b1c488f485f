package socket_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/operator/socket"
	"github.com/longshore/longshore/internal/test/expect"
)

// listening answers calls and backups with these until the test ends.
func listening(t *testing.T, link operator.Link, save socket.Save) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket") // t.TempDir may be too long for a socket
	expect.OK(t, err)
	path = filepath.Join(dir, "s")
	s := socket.Listen(path, link, save, time.Now, slog.New(slog.DiscardHandler))
	if s == nil {
		t.Fatal("it does not listen")
	}
	t.Cleanup(func() {
		s.Close()
		expect.Fails(t, "the socket is left", os.ErrNotExist, expect.Err(os.Lstat(path)))
		_ = os.RemoveAll(dir)
	})
	return path
}

// A broker that answers with a fault runs: it is asked, and what it says is told beside
// what it gave. A refusal stays one, and several faults stay several.
func TestOutcomesPass(t *testing.T) {
	damaged, other := errors.New("a record is damaged"), errors.New("another one is")
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   []string
		refuse bool
	}{
		"Done":   {"no error is made up", nil, nil, false},
		"Failed": {"a fault keeps its words", damaged, []string{"a record is damaged"}, false},
		"Several": {"each can be counted", errors.Join(damaged, errors.Join(other, damaged)),
			[]string{"a record is damaged", "another one is", "a record is damaged"}, false},
		"Wrapped": {"what says more than its causes is not taken apart", fmt.Errorf("reading: %w, %w", damaged, other),
			[]string{"reading: a record is damaged, another one is"}, false},
		"Refused": {"a refusal says what to do", &operator.Refusal{Message: "wait"}, []string{"wait"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := listening(t, func(_ context.Context, method string, in json.RawMessage) (json.RawMessage, error) {
				var q operator.Query
				if err := json.Unmarshal(in, &q); err != nil || method != "list" || q.Plan != "small" {
					t.Errorf("called: %q %s %v", method, in, err)
				}
				return json.RawMessage(`{"items":[{"instance":"one"}],"next":"two"}`), tc.err
			}, nil)
			client := socket.Dial(path)
			expect.Same(t, "it answers", true, client.Answers(t.Context()))
			page, err := operator.List.Ask(t.Context(), client.Call, operator.Query{Plan: "small"})
			expect.Same(t, tc.reason, operator.Page{Items: []operator.Row{{Instance: "one"}}, Next: "two"}, page)
			var got []string
			for _, fault := range operator.Faults(err) {
				got = append(got, fault.Error())
			}
			expect.Same(t, tc.reason, tc.want, got)
			expect.Same(t, fmt.Sprintf("%s: refused", tc.reason), tc.refuse, errors.As(err, new(*operator.Refusal)))
		})
	}
}

// Only the folder's owner reaches the broker. A method of another version of the program is no fault of the records.
func TestAMethodThatTheBrokerDoesNotKnow(t *testing.T) {
	path := listening(t, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		t.Error("it was called")
		return nil, nil
	}, nil)
	expect.Same(t, "the socket's mode", 0o600, expect.Get(os.Stat(path))(t).Mode().Perm())
	expect.Same(t, "nobody answers", false, socket.Dial(path+"-of-nobody").Answers(t.Context()))
	_, err := socket.Dial(path).Call(t.Context(), "fly", nil)
	expect.Says(t, "the error", fmt.Sprint(err), `does not know "fly": it is of another version`)
}

// A backup comes as it is written. One that ends in an error, or breaks off, is not taken for whole.
func TestBackupsStream(t *testing.T) {
	read := make(chan struct{})
	save := func(_ context.Context, wish backup.Wish, to io.Writer) error {
		_, _ = io.WriteString(to, "first "+wish.Instance)
		if f, ok := to.(interface{ Flush() }); ok {
			f.Flush()
		}
		switch wish.Platform {
		case "breaks":
			panic(errors.New("as http.Server recovers it"))
		case "refuses":
			return &operator.Refusal{Message: "wait"}
		}
		<-read // the first part, before there is a second one
		_, err := io.WriteString(to, ", last")
		return err
	}
	client := socket.Dial(listening(t, nil, save))
	got := &reader{first: read}
	expect.OK(t, client.Backup(t.Context(), backup.Wish{Instance: "one"}, got))
	expect.Same(t, "it gave", "first one, last", got.String())
	if err := client.Backup(t.Context(), backup.Wish{Platform: "refuses"}, io.Discard); !errors.As(err, new(*operator.Refusal)) {
		t.Errorf("refused: %v", err)
	}
	err := client.Backup(t.Context(), backup.Wish{Platform: "breaks"}, io.Discard)
	expect.Says(t, "broken off", fmt.Sprint(err), "cut off")
	err = client.Backup(t.Context(), backup.Wish{Instance: "one"}, full{})
	expect.Fails(t, "where nothing more can be written", errFull, err)
	expect.Never(t, "where nothing more can be written", fmt.Sprint(err), "broker")
}

// A reader that takes nothing ends its backup: otherwise the server in the folder would keep its log of changes for ever.
func TestAStalledReaderEndsItsBackup(t *testing.T) {
	ended := make(chan error, 1)
	save := func(_ context.Context, _ backup.Wish, to io.Writer) (err error) {
		for part := make([]byte, 1<<16); err == nil; {
			_, err = to.Write(part)
		}
		ended <- err
		return err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket.Stream(w, r, save, func() time.Time { return time.Now().Add(time.Millisecond) })
	}))
	defer server.Close()
	reader := expect.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
	defer func() { _ = reader.Close() }()
	expect.OK(t, expect.Err(io.WriteString(reader, "POST / HTTP/1.1\r\nHost: broker\r\nContent-Length: 2\r\n\r\n{}")))
	expect.Fails(t, "the backup", os.ErrDeadlineExceeded, <-ended)
}

// A backup may take longer than its reader may stall: each write has the whole time, and so has the outcome.
func TestEachWriteHasItsTime(t *testing.T) {
	w := &bounded{ResponseRecorder: httptest.NewRecorder()}
	save := func(_ context.Context, _ backup.Wish, to io.Writer) error {
		for n := range 3 {
			expect.OK(t, expect.Err(to.Write([]byte("part"))))
			expect.Same(t, "the writes that have a deadline", n+1, len(w.deadlines))
		}
		return nil
	}
	var given []time.Time
	socket.Stream(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")), save, func() time.Time {
		given = append(given, time.Unix(int64(len(given)), 0))
		return given[len(given)-1]
	})
	expect.Same(t, "the deadlines of the writes and of the outcome", given, w.deadlines)
	expect.Same(t, "the writes and the outcome that have a deadline", 4, len(w.deadlines))
}

// A bounded recorder notes the deadlines of writes.
type bounded struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *bounded) SetWriteDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

var errFull = errors.New("no space left on device")

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A reader says when it has got something.
type reader struct {
	strings.Builder
	first chan struct{}
}

func (r *reader) Write(b []byte) (int, error) {
	if r.Len() == 0 {
		close(r.first)
	}
	return r.Builder.Write(b)
}
