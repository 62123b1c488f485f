package browser

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// On paper a page is dark on light whatever the screen's colours are, shows what is folded, and has no buttons.
func TestPrint(t *testing.T) {
	w := open(t)
	w.look(1280, "dark")
	w.enter("ready")
	const lightness = `getComputedStyle(document.body).color.match(/\d+/g).reduce((a, b) => a + Number(b), 0)`
	if on := get(w, chromedp.Evaluate[int](lightness)); on < 3*128 {
		t.Fatalf("on a dark screen the text has the lightness %d", on)
	}
	w.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print",
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return err
	})
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
