package lifecycle

import "fmt"

// A Reason says why a request was refused. The osb package maps each to one
// status and error code; nothing else does.
type Reason int

// The reasons. The comment names the checklist item that fixes the answer.
const (
	Internal                Reason = iota // ERR-12: 500, in a fixed sentence
	OperationFailed                       // 500 with the provider's safe message
	BadRequest                            // INP-*: 400
	Unauthorized                          // AUTH-01: 401
	NotFound                              // GETI-02: 404
	MethodNotAllowed                      // INP-16: 405
	Conflict                              // PROV-08: 409
	Gone                                  // DEPR-03: 410
	VersionUnsupported                    // HDR-04: 412
	TooLarge                              // INP-14: 413
	Unprocessable                         // ERR-07: 422 without a reserved code
	TooManyRequests                       // 429, with Retry-After
	AsyncRequired                         // ERR-03: 422
	ConcurrencyError                      // ERR-04: 422
	RequiresApp                           // ERR-05: 422
	MaintenanceInfoConflict               // ERR-06: 422
	reasons                               // how many there are
)

// A Refusal is an answer to a request that is not done. Its message is shown
// to the platform's user: it says what to do next and carries no internals
// and no secret. Any error that is not a Refusal is answered as Internal, in
// a fixed sentence.
type Refusal struct {
	Reason  Reason
	Message string
	// InstanceUsable and UpdateRepeatable accompany a refused update or
	// deprovision from version 2.16 on (ERR-10); nil is not sent.
	InstanceUsable   *bool
	UpdateRepeatable *bool
	// Cause is for the log of this broker alone.
	Cause error
}

// Error is for logs: it includes the cause.
func (r *Refusal) Error() string {
	if r.Cause != nil {
		return fmt.Sprintf("%s: %v", r.Message, r.Cause)
	}
	return r.Message
}

// Unwrap gives the cause to errors.Is and errors.As.
func (r *Refusal) Unwrap() error { return r.Cause }

// Refuse makes a Refusal from a format.
func Refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Sentences that clients recognise word for word (ERR-03, ERR-05, CLI-01).
const (
	AsyncRequiredSentence = "This service plan requires client support for asynchronous service operations."
	ConcurrencySentence   = "The Service Broker does not support concurrent requests that mutate the same resource."
	RequiresAppSentence   = "This service supports generation of credentials through binding an application only."
)

// RefuseAsyncRequired is the answer to a request without accepts_incomplete
// whose work can only be done asynchronously.
func RefuseAsyncRequired() *Refusal {
	return &Refusal{Reason: AsyncRequired, Message: AsyncRequiredSentence}
}

// RefuseConcurrent is the answer while another operation holds the resource.
func RefuseConcurrent() *Refusal {
	return &Refusal{Reason: ConcurrencyError, Message: ConcurrencySentence}
}

// RefuseRequiresApp is the answer to a service key for a plan that needs an
// application.
func RefuseRequiresApp() *Refusal {
	return &Refusal{Reason: RequiresApp, Message: RequiresAppSentence}
}
