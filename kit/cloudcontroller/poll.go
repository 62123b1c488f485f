package cloudcontroller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// errOvertaken says that a later request has overtaken this one.
var errOvertaken = errors.New("a later request has overtaken this one")

// An ending is how an operation ended, as the platform sees it.
type ending struct {
	succeeded   bool
	status      int
	code        string
	description string
}

func (e ending) failure(k Kind) *Failure {
	return &Failure{Kind: k, Status: e.status, Code: e.code, Description: e.description}
}

// clamped keeps a pause between two polls within its bounds.
func (c *Client) clamped(d time.Duration) time.Duration {
	return max(cmp.Or(c.MinInterval, minInterval), min(cmp.Or(c.MaxInterval, maxInterval), d))
}

// poll asks about an accepted operation until it has ended, a limit is reached or the request is
// overtaken (POLL-*). An error means that the platform does not know how the operation ends.
func (c *Client) poll(ctx context.Context, t turn, k Kind, i Instance, accepted response) (ending, error) {
	began, limit := c.Now(), c.limit(i)
	query := url.Values{"service_id": {i.ServiceID}, "plan_id": {i.PlanID}}
	if token, _ := accepted.body["operation"].(string); token != "" {
		query.Set("operation", token)
	}
	last, floor := accepted, cmp.Or(c.MinInterval, minInterval)
	for n := 0; ; n++ {
		if n > 0 || c.PollAfterPause {
			pause := max(c.clamped(last.retryAfter()), min(floor, cmp.Or(c.MaxInterval, maxInterval)))
			if err := c.Sleep(ctx, pause); err != nil {
				return ending{}, err
			}
			floor = time.Duration(float64(floor) * cmp.Or(c.Backoff, 1))
		}
		if !c.now(t, nil) {
			return ending{}, errOvertaken
		}
		if c.Now().Sub(began) > limit || c.PollAttempts > 0 && n == c.PollAttempts {
			return ending{description: fmt.Sprintf("Service Broker failed to %s within the required time.", k)}, nil // POLL-06
		}
		last = c.send(ctx, request{method: http.MethodGet, path: t.path("last_operation"), query: query, user: true})
		if end, ended := c.polled(t, k, last); ended {
			return end, nil
		}
	}
}

// polled reads the answer to a poll (POLL-07): only the three states mean anything, and 410 for a deletion.
func (c *Client) polled(t turn, k Kind, a response) (ending, bool) {
	state := a.text("state")
	description := a.text("description")
	switch {
	case a.status == http.StatusGone && k.deletes():
		c.tell(a, "gone")
		return ending{succeeded: true}, true
	case a.status != http.StatusOK:
		c.tell(a, "asks again: this answer means nothing")
		return ending{}, false
	}
	if description != "" {
		c.now(t, func(i *Instance) { i.Description = description })
	}
	switch state {
	case "succeeded":
		c.tell(a, "the %s has succeeded", k)
		return ending{succeeded: true}, true
	case "failed":
		c.tell(a, "the %s has failed", k)
		code := a.text("error")
		return ending{status: a.status, code: code,
			description: cmp.Or(description, "The operation failed; the broker did not say why.")}, true
	case "in progress":
		c.tell(a, "asks again in %v", c.clamped(a.retryAfter()))
	default:
		c.tell(a, "asks again: there is no such state")
	}
	return ending{}, false
}
