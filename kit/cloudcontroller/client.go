// Package cloudcontroller is the client side of the API, for tests and trials: a platform that
// behaves as Cloud Controller does. It sends requests, polls accepted operations until they end or
// a limit is reached, deletes possible orphans, over 34 hours if necessary, and keeps account of
// what it believes a broker holds. It speaks HTTP and knows nothing of the inside of any broker.
// The clock and its sleep are inputs, so that 34 hours can pass in an instant. Users, their
// organizations and the names of their instances are left to its callers.
package cloudcontroller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// The default settings of Cloud Controller.
const (
	NewestMinor = 17
	// requestTimeout is how long a platform waits for an answer (SIM-17).
	requestTimeout = time.Minute
	// minInterval and maxInterval bound the pause between two polls (POLL-03).
	minInterval = time.Minute
	maxInterval = 24 * time.Hour
	// pollLimit is the time after which an unfinished operation counts as failed (POLL-04).
	pollLimit = 10080 * time.Minute
	// retries is how often the deletion of an orphan is repeated: after 2, 4, 8, … minutes, 34
	// hours in total (ORP-03).
	retries = 10
)

// A Doer makes requests; an *http.Client is one. It must not follow redirects.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// A Credential is the login of the platform.
type Credential struct{ Username, Password string }

// String returns the user name only.
func (c Credential) String() string { return c.Username }

// GoString returns the user name only.
func (c Credential) GoString() string { return c.Username }

// A Client is a platform with one broker. URL, HTTP, Now, Sleep and NewID are required; the other
// settings default to those of Cloud Controller. Its methods may be called concurrently. A Client
// must not be copied after its first use.
type Client struct {
	URL        string // with its base path, if it has one
	Credential Credential
	// APIVersion is the minor version to speak, 9 to 17; zero means 17.
	APIVersion int
	HTTP       Doer
	Now        func() time.Time
	// Sleep waits for d or until ctx is done.
	Sleep func(ctx context.Context, d time.Duration) error
	NewID func() string // a new GUID at each call
	// Observe is called with each exchange, one at a time, once the platform has decided what follows from it.
	Observe func(Exchange)

	// Synchronous forbids the broker to answer asynchronously, except to deletions of orphans (ORP-02).
	Synchronous bool
	// UserID is the user for whom requests are made; none if empty. Deletions of orphans name no user.
	UserID string
	// Timeout bounds the wait for the answer to a request.
	Timeout time.Duration
	// MinInterval and MaxInterval bound the pause between two polls, whatever Retry-After says;
	// MinInterval is also the pause if there is no Retry-After.
	MinInterval, MaxInterval time.Duration
	// Backoff is the factor by which the shortest pause grows with each poll (POLL-11); zero means 1.
	Backoff float64
	// PollLimit and PollAttempts end the polling of one operation, whichever is reached first; zero
	// attempts mean no limit.
	PollLimit    time.Duration
	PollAttempts int
	// PollAfterPause adds a pause before the first poll (POLL-12).
	PollAfterPause bool
	// KeepFailed leaves a failed creation to the user, who may want to look at it (ORP-09).
	KeepFailed bool
	// KeepOrphans makes the client delete nothing that it was not asked to delete (ORP-08): orphans
	// stay in the account.
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

// mayWait reports whether requests of a kind allow the broker to answer asynchronously.
func (c *Client) mayWait(k Kind) bool { return !c.Synchronous && k.follows(c.minor()) }

// A Kind is the kind of a request that changes something.
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

// follows reports whether a version allows an asynchronous answer: for bindings from 2.14 on (POLL-01).
func (k Kind) follows(minor int) bool { return !k.ofBinding() || minor >= 14 }

// A Failure says that a request failed, and why.
type Failure struct {
	Kind Kind
	// Status is the status of the broker's answer; 0 if there was no answer or no request.
	Status int
	// Code and Description are what the broker said (SIM-18), or what the platform says if the broker said nothing.
	Code, Description string
	// Then says in a sentence what the platform does about the failure.
	Then string
}

// Error returns the message that a user is shown.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s failed: %s", f.Kind, f.Description)
}

// A Refused says that a request was not sent, because the platform's own rules forbid it.
type Refused struct{ Why string }

// Error returns the message that a user is shown.
func (r *Refused) Error() string { return r.Why }

// errBusy is the platform's own refusal of concurrent operations (SIM-06).
var errBusy = &Refused{"Another operation for this service instance is in progress."}
