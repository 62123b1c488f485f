// Package cloudcontroller is the other side of the API, for tests and trials: a
// platform that behaves as Cloud Controller does. It sends requests, polls
// what was accepted until it has ended or a limit is reached, deletes what may
// have been orphaned, over 34 hours if it must, and keeps account of what it
// believes that a broker holds. It speaks HTTP and knows nothing of any broker
// within; the clock and its sleep are inputs, so that 34 hours can pass at
// once. Users, their organizations and the names of their instances it leaves
// to its callers.
package cloudcontroller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Cloud Controller has these settings unless its operator says otherwise.
const (
	NewestMinor = 17
	// requestTimeout is how long a platform waits for an answer (SIM-17).
	requestTimeout = time.Minute
	// minInterval and maxInterval bound the pause between two polls (POLL-03).
	minInterval = time.Minute
	maxInterval = 24 * time.Hour
	// pollLimit is when an operation counts as failed that has not ended
	// (POLL-04).
	pollLimit = 10080 * time.Minute
	// retries are how often a deletion of an orphan is repeated: after 2, 4,
	// 8, … minutes, which together are 34 hours (ORP-03).
	retries = 10
)

// A Doer makes requests; an *http.Client is one. It must not follow redirects.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// A Credential is what the platform logs in with.
type Credential struct{ Username, Password string }

// String leaves the password out.
func (c Credential) String() string { return c.Username }

// GoString leaves the password out.
func (c Credential) GoString() string { return c.Username }

// A Client is a platform with one broker. URL, HTTP, Now, Sleep and NewID are
// required; the rest is Cloud Controller's unless set. Its methods may be
// called by many goroutines. A Client must not be copied once it is used.
type Client struct {
	URL        string // with its base path, if it has one
	Credential Credential
	// APIVersion is the minor version that is spoken, 9 to 17; 17 if zero.
	APIVersion int
	HTTP       Doer
	Now        func() time.Time
	// Sleep waits for d or until ctx is done.
	Sleep func(ctx context.Context, d time.Duration) error
	NewID func() string // a new GUID at each call
	// Observe is told of each exchange, one at a time, once it is decided what
	// follows.
	Observe func(Exchange)

	// Synchronous does not allow the broker to answer later; deletions of
	// orphans do all the same (ORP-02).
	Synchronous bool
	// UserID is whom requests are made for; none if empty. Nobody asks for the
	// deletion of an orphan.
	UserID string
	// Timeout ends a request that is not answered.
	Timeout time.Duration
	// MinInterval and MaxInterval bound the pause between two polls, whatever
	// Retry-After says; MinInterval is also the pause where it says nothing.
	MinInterval, MaxInterval time.Duration
	// Backoff is by how much the shortest pause grows with each poll (POLL-11);
	// 1 if zero.
	Backoff float64
	// PollLimit and PollAttempts end the polling of one operation, whichever is
	// reached first; zero attempts are no limit.
	PollLimit    time.Duration
	PollAttempts int
	// PollAfterPause waits before the first poll, too (POLL-12).
	PollAfterPause bool
	// KeepFailed leaves what an operation failed to make to the user, who may
	// want to look at it (ORP-09).
	KeepFailed bool
	// KeepOrphans deletes nothing that was not asked for (ORP-08): orphans stay
	// in the account.
	KeepOrphans bool
	// FollowMitigation also polls the accepted deletion of an orphan. Cloud
	// Controller does not (ORP-04).
	FollowMitigation bool

	telling sync.Mutex // held while Observe is called
	mu      sync.Mutex
	catalog *Catalog
	account map[key]*record
	secrets secrets
}

func (c *Client) minor() int { return cmp.Or(c.APIVersion, NewestMinor) }

// mayWait reports whether requests of a kind allow the broker to answer later.
func (c *Client) mayWait(k Kind) bool { return !c.Synchronous && k.follows(c.minor()) }

// A Kind is what a request changes.
type Kind string

// The kinds.
const (
	Provision   Kind = "provision"
	Update      Kind = "update"
	Deprovision Kind = "deprovision"
	Bind        Kind = "bind"
	Unbind      Kind = "unbind"
)

func (k Kind) creates() bool { return k == Provision || k == Bind }

func (k Kind) deletes() bool { return k == Deprovision || k == Unbind }

func (k Kind) ofBinding() bool { return k == Bind || k == Unbind }

// follows reports whether a version lets the answer come later: for bindings
// from 2.14 on (POLL-01).
func (k Kind) follows(minor int) bool { return !k.ofBinding() || minor >= 14 }

// A Failure is a request that did not come to what was asked for.
type Failure struct {
	Kind Kind
	// Status is the broker's; 0 if there was no answer or no request.
	Status int
	// Code and Description are what the broker said (SIM-18), or what the
	// platform makes of its silence.
	Code, Description string
	// Then is what the platform does about it, in a sentence.
	Then string
}

// Error is what a user is shown.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s failed: %s", f.Kind, f.Description)
}

// A Refused request was not sent: the platform's own rules forbid it.
type Refused struct{ Why string }

// Error is what a user is shown.
func (r *Refused) Error() string { return r.Why }

// errBusy is the platform's own refusal (SIM-06).
var errBusy = &Refused{"Another operation for this service instance is in progress."}
