package cloudcontroller

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Sentences that say what the platform does about a failure.
const (
	thenNothing = "The platform takes it that nothing was made, and deletes nothing."
	thenKept    = "The platform keeps it; the user can ask again."
	thenUser    = "The platform leaves it to the user to delete."
	thenOrphan  = "A platform would take it for an orphan, and delete it at once; should that fail, ten times more within 34 " +
		"hours."
	thenDeleted = "The platform has deleted what may have been made."
	thenGivenUp = "The platform has tried to delete what may have been made for 34 hours, and has given up: it is left behind."
	thenEnded   = "The platform was ended before it could delete what may have been made."
)

// mitigate deletes a possible orphan: at once, and again after each failure, ten times within 34
// hours (ORP-02 to ORP-05). It returns a sentence that says how that ended.
func (c *Client) mitigate(ctx context.Context, t turn, i Instance) string {
	if !c.state(t, Orphaned) {
		return thenKept // a request to delete it has overtaken this one
	}
	if c.KeepOrphans {
		return thenOrphan
	}
	for n := 0; ; n++ {
		deleted, err := c.deleteOrphan(ctx, t, i)
		switch {
		case err != nil:
			return thenEnded
		case deleted:
			c.gone(t)
			return thenDeleted
		case n == retries:
			c.state(t, GivenUp)
			return thenGivenUp
		}
		if c.Sleep(ctx, time.Minute<<(n+1)) != nil {
			return thenEnded
		}
	}
}

// deleteOrphan tries once to delete an orphan. Nobody asked for that, so the request names no user.
func (c *Client) deleteOrphan(ctx context.Context, t turn, i Instance) (deleted bool, err error) {
	k := t.remove()
	a := c.send(ctx, c.deletion(t.key, i, k.follows(c.minor()), false))
	v := judge(k, c.minor(), a, nil)
	switch {
	case v.done:
		c.tell(a, "the orphan is gone")
		return true, nil
	case v.accepted && !c.FollowMitigation:
		c.tell(a, "the orphan is taken for deleted")
		return true, nil
	case !v.accepted:
		c.tell(a, "the orphan is still there: deletes it again later")
		return false, nil
	}
	c.tell(a, "the orphan is being deleted")
	end, err := c.poll(ctx, t, k, i, a)
	return end.succeeded, err
}

// deletion returns the request that deletes an instance or a binding.
func (c *Client) deletion(k key, i Instance, later, user bool) request {
	query := url.Values{"service_id": {i.ServiceID}, "plan_id": {i.PlanID}}
	if later {
		query.Set("accepts_incomplete", "true")
	}
	return request{method: http.MethodDelete, path: k.path(), query: query, user: user}
}
