package pages_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A binding whose credentials expire says until when they are valid and when to rotate them; other bindings say
// nothing of that.
func TestBindingsThatExpire(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	d.signIn(own)
	bind := func(id string, renew, expires time.Duration) {
		r := lifecycle.Record{Key: own.BindingKey(id), State: lifecycle.Ready, Created: epoch}
		if expires != 0 {
			r.RenewBefore, r.ExpiresAt = epoch.Add(renew), epoch.Add(expires)
		}
		d.put(r)
	}
	bind("for-good", 0, 0)
	d.lacks(d.page(own).Body.String(), "Expires")
	bind("young", 48*time.Hour, 72*time.Hour)
	bind("old", -2*time.Hour, 5*time.Hour)
	bind("late", -96*time.Hour, 0-24*time.Hour)
	w := d.page(own)
	d.sees(w, http.StatusOK, "in 2 days", "in 3 days", "To be rotated", "in 5 hours", "Expired", "4 days ago")
	cells := func(rotate, expires string) string {
		return fmt.Sprintf(`<td role="cell" data-head="Rotate by">%s</td><td role="cell" data-head="Expires">%s</td>`,
			rotate, expires)
	}
	d.sees(w, http.StatusOK, "<code>for-good</code></td>"+cells("", ""))
}
