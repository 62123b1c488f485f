package logs_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/longshore/longshore/internal/base/logs"
)

type name string

func (n name) String() string { return string(n) }

func TestLinesSayWhatTheyAreAbout(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logs.Handler{Handler: slog.NewTextHandler(&out,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})})
	ctx := logs.Begin(context.Background())
	logs.AddRequest(ctx, "r1")
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	logs.AddOperation(inner, name("o1"))
	logs.AddRequest(inner, "")
	log.With("a", 1).InfoContext(ctx, "outer")
	logs.AddOperation(inner, name("o2"))
	log.InfoContext(inner, "inner", "b", 2)
	other := logs.Begin(ctx)
	logs.AddOperation(other, name("o3"))
	log.InfoContext(other, "other")
	log.InfoContext(ctx, "still")
	binding := logs.Begin(ctx)
	logs.AddSubject(binding, "p", "", "")
	logs.AddSubject(binding, "p", "i", "b")
	logs.AddRequest(binding, "r2")
	logs.AddOperation(binding, name("o4"))
	log.InfoContext(binding, "all")
	logs.AddOperation(context.Background(), name("nowhere"))
	log.Info("without")
	want := `msg=outer a=1 request_identity=r1 operation=o1
msg=inner b=2 request_identity=r1 operation=o2
msg=other operation=o3
msg=still request_identity=r1 operation=o2
msg=all platform=p instance=i binding=b request_identity=r2 operation=o4
msg=without
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
