// Package browser looks at the pages in a real browser: Chromium, with axe for what people need who do not see them as others do.
package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/test/pagestest"
)

// axeFile is the checker of accessibility, which `make tools` installs.
const axeFile = "../.tools/axe-4.14.1/node_modules/axe-core/axe.min.js"

// program is the browser.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a browser")
	}
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Fatal("there is no browser: install Chromium (apt-get install chromium fonts-dejavu-core), or name one in CHROMIUM")
	return ""
}

// A window is a browser in which the pages of a stage are open.
type window struct {
	*testing.T
	ctx   context.Context
	url   string
	stage *pagestest.Stage
}

// open starts a browser and a server.
func open(t *testing.T) *window {
	t.Helper()
	stage := pagestest.New(t)
	server := httptest.NewServer(stage.Server)
	t.Cleanup(server.Close)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program(t)), chromedp.NoSandbox,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true), chromedp.Flag("hide-scrollbars",
			true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	// Cookies of __Host- need a safe origin, which localhost is and 127.0.0.1 need not be.
	return &window{t, ctx, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), stage}
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.Helper()
	if err := chromedp.Do(w.ctx, steps...); err != nil {
		w.Fatal(err)
	}
}

// get runs an action and gives its value.
func get[T any](w *window, action chromedp.Action[T]) T {
	w.Helper()
	value, err := chromedp.Run(w.ctx, action)
	if err != nil {
		w.Fatal(err)
	}
	return value
}

// look sets the width and the colours.
func (w *window) look(width int64, scheme string) {
	w.Helper()
	w.do(chromedp.EmulateViewport(width, 1000))
	w.media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// media sets what the page is shown on.
func (w *window) media(is emulation.SetEmulatedMediaParams) {
	w.Helper()
	w.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, is)
		return err
	})
}

// call calls the browser's own protocol.
func (w *window) call(f func(ctx context.Context) error) {
	w.Helper()
	w.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error { return f(ctx) }))
}

// watch has each page note what its policy blocks.
func (w *window) watch() {
	w.Helper()
	w.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `window.blocked = [];
				document.addEventListener('securitypolicyviolation',
					function (e) { blocked.push(e.violatedDirective + ' ' + e.blockedURI); });`,
		})
		return err
	})
}

// enter opens the page of a scene by a link.
func (w *window) enter(scene string) {
	w.Helper()
	w.do(chromedp.Navigate(w.url+w.stage.Enter(scene)), chromedp.WaitVisible("main[data-live]"))
}

// A violation is what axe finds wrong.
type violation struct {
	ID, Help string
	Nodes    []string
}

// clean requires a page without violations of its policy, of accessibility, and without anything wider than the window.
func (w *window) clean(what string) {
	w.Helper()
	axe, err := os.ReadFile(axeFile)
	if err != nil {
		w.Fatalf("%v: run `make tools`", err)
	}
	get(w, chromedp.Evaluate[bool](string(axe)+"; true"))
	found := get(w, chromedp.Evaluate[[]violation](`axe.run().then(function (r) { return r.violations.map(function (v) {
		return {ID: v.id, Help: v.help, Nodes: v.nodes.map(function (n) { return n.html; })}; }); })`, chromedp.EvalAwaitPromise))
	if len(found) > 0 {
		w.Errorf("%s: axe finds %+v", what, found)
	}
	if blocked := get(w, chromedp.Evaluate[[]string](`window.blocked`)); len(blocked) > 0 {
		w.Errorf("%s: the policy blocked %q", what, blocked)
	}
	if size := get(w,
		chromedp.Evaluate[[]float64](`[document.documentElement.scrollWidth, window.innerWidth]`)); size[0] > size[1] {
		w.Errorf("%s: the page is %v wide in a window of %v", what, size[0], size[1])
	}
}

// picture writes a picture of the page where LONGSHORE_PICTURES names a folder.
func (w *window) picture(name string) {
	w.Helper()
	folder := os.Getenv("LONGSHORE_PICTURES")
	if folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), get(w, chromedp.FullScreenshot(100)), 0o644); err != nil {
		w.Fatal(err)
	}
}

// everywhere opens pages in narrow and wide windows, light and dark. Each is clean, and has its picture.
func (w *window) everywhere(open func(shown func(page string))) {
	w.Helper()
	w.watch()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			w.look(width, scheme)
			open(func(page string) {
				name := fmt.Sprintf("%s-%d-%s", page, width, scheme)
				w.clean(name)
				w.picture(name)
			})
		}
	}
}

// Each page is accessible, fits narrow and wide windows, and breaks no rule of its policy, in light and dark.
func TestPages(t *testing.T) {
	w := open(t)
	w.everywhere(func(shown func(string)) {
		for _, scene := range w.stage.Scenes {
			w.enter(scene)
			shown(scene)
		}
		for page, path := range map[string]string{
			"sign-in": "instance?platform=cf&id=stranger", "upgrade": "order?platform=cf&id=ready&do=upgrade",
			"delete": "order?platform=cf&id=delete-failed&do=delete",
		} {
			w.do(chromedp.Navigate(w.url+"/dashboard/"+path), chromedp.WaitVisible("main h1"))
			shown(page)
		}
	})
}

// The same of the console.
func TestConsole(t *testing.T) {
	w := open(t)
	w.do(chromedp.Navigate(w.url+w.stage.EnterConsole()), chromedp.WaitVisible("main.wide"))
	w.everywhere(func(shown func(string)) {
		for page, path := range w.stage.ConsolePages() {
			w.do(chromedp.Navigate(w.url+"/console/"+path), chromedp.WaitVisible("main.wide"))
			shown("console-" + page)
		}
	})
}

// A page brings itself up to date, and keeps the focus where it is.
func TestAPageRefreshes(t *testing.T) {
	w := open(t)
	w.enter("creating")
	says := func(want string) {
		t.Helper()
		if state := get(w, chromedp.Text("header .state")); state != want {
			t.Errorf("the page says %q, want %q", state, want)
		}
	}
	says("Creating")
	w.do(chromedp.Focus("footer button"))
	w.stage.Finish("creating")
	w.do(chromedp.WaitVisible("header .good"))
	if focus := get(w, chromedp.Evaluate[string]("document.activeElement.textContent")); focus != "Sign out" {
		t.Errorf("afterwards, the focus is on %q", focus)
	}
	says("Ready")
}

// Without script, a button follows the link, and the page shows the same.
func TestWithoutScript(t *testing.T) {
	w := open(t)
	w.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
	title := func() string { t.Helper(); return get(w, chromedp.TextContent("h1")) }
	w.do(chromedp.Navigate(w.url+w.stage.Enter("ready")), chromedp.Click("button.primary"), chromedp.WaitReady("main[data-live]"))
	if title() != "orders-ready" {
		t.Errorf("the page is of %q", title())
	}
	w.do(chromedp.Click("footer button"), chromedp.WaitReady("main.message"),
		chromedp.Navigate(w.url+pages.InstancePath(w.stage.Key("ready"))))
	if title() != "Sign in to see this instance" {
		t.Errorf("after signing out, the page says %q", title())
	}
}

// A page of another site cannot frame an instance's.
func TestAFrameStaysEmpty(t *testing.T) {
	w := open(t)
	w.enter("ready")
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(rw, "<h1>other</h1><iframe src='%s'></iframe>", w.url+pages.InstancePath(w.stage.Key("ready")))
	}))
	t.Cleanup(other.Close)
	failed := make(chan string, 100)
	if err := chromedp.Listen(w.ctx, func(event any) {
		if f, is := event.(*network.EventLoadingFailed); is {
			failed <- f.ErrorText
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.do(chromedp.Navigate(other.URL), chromedp.WaitReady("iframe"))
	select {
	case why := <-failed:
		if why != "net::ERR_BLOCKED_BY_RESPONSE" {
			t.Errorf("the frame was not loaded: %s", why)
		}
	case <-time.After(time.Minute):
		t.Error("the frame was loaded")
	}
}

// On paper a page is dark on light whatever the screen's colours are, shows what is folded, and has no buttons.
func TestPrint(t *testing.T) {
	w := open(t)
	w.look(1280, "dark")
	w.enter("ready")
	const lightness = `getComputedStyle(document.body).color.match(/\d+/g).reduce((a, b) => a + Number(b), 0)`
	if on := get(w, chromedp.Evaluate[int](lightness)); on < 3*128 {
		t.Fatalf("on a dark screen the text has the lightness %d", on)
	}
	w.media(emulation.SetEmulatedMediaParams{Media: "print",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	if on := get(w, chromedp.Evaluate[int](lightness)); on > 3*64 {
		t.Errorf("on paper the text has the lightness %d", on)
	}
	shown := func(what string) int {
		t.Helper()
		return get(w, chromedp.Evaluate[int](`[...document.querySelectorAll('`+what+`')].filter((e) => e.checkVisibility(
			{contentVisibilityAuto: true}) && e.getClientRects().length).length`))
	}
	if n := shown("button, form, nav"); n > 0 {
		t.Errorf("on paper there are %d buttons and forms", n)
	}
	if folded := shown("details:not([open]) pre"); folded == 0 {
		t.Error("on paper, what is folded stays folded")
	}
}
