package lifecycle

import (
	"fmt"
	"strings"
)

// A Reason says why a request was refused. The osb package maps each to one
// status and error code; nothing else does.
type Reason int

// The reasons. The comment names the rule that fixes the answer.
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
)

// A Refusal is the answer to a request that the broker does not carry out. Its message is shown
// to the platform's user: it says what to do next, and carries no internals and no secret. Any
// other error is answered as Internal, in a fixed sentence.
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

// Unwrap returns the cause, for errors.Is and errors.As.
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

// A Text is the template of a refusal. Calling it fills in the message, and ignores surplus arguments.
type Text func(args ...any) *Refusal

func text(reason Reason, format string) Text {
	takes := strings.Count(format, "%")
	return func(args ...any) *Refusal { return Refuse(reason, format, args[:min(takes, len(args))]...) }
}

// Because returns the refusal with a cause for the log.
func (t Text) Because(cause error, args ...any) *Refusal {
	r := t(args...)
	r.Cause = cause
	return r
}

// The texts say what is wrong and what to do; each is written here only. A %s that names a thing takes its Noun.
var (
	// The catalog does not hold, or does not allow, the thing that was asked for.
	RefuseService      = text(BadRequest, "The service_id is not in the catalog of this broker.")
	RefusePlan         = text(BadRequest, "The plan_id is not a plan of this service in the catalog.")
	RefuseOtherService = text(BadRequest, "The service_id is not the one of this service instance, and cannot be changed.")
	RefuseOtherPlan    = text(BadRequest, "The service_id or plan_id is not the one of the service instance.")
	RefuseUnbindable   = text(BadRequest, "This plan cannot be bound.")
	RefuseRoute        = text(BadRequest, "This service cannot be bound to a route.")
	RefuseRotation     = text(BadRequest, "Bindings of this plan cannot be rotated; create a binding without "+
		"predecessor_binding_id.")
	RefuseParameters = text(BadRequest, "%s") // the plan's schema's complaint
	// One text covers every reason why an instance is no source, so that it does not reveal what exists.
	RefuseSource = text(BadRequest, "The parameter %s does not name a service instance that can be restored from: "+
		"one of the same service in the same space, which is ready and is not being changed.")
	RefuseSourceChange = text(BadRequest, "The parameter %s says what the service instance was restored from, and cannot be "+
		"changed.")
	RefuseMerged     = text(BadRequest, "The parameters together with those that the service instance has exceed %d bytes.")
	RefusePlanChange = text(Unprocessable, "The plan of this service instance cannot be changed.")
	RefuseMove       = text(Unprocessable, "The service instance cannot move there in place: it would lose the data that it "+
		"holds. Create a new service instance there, and copy the data.")
	RefuseFixed = text(Unprocessable, "The parameter %s cannot be changed on a service instance that exists: it would lose the "+
		"data that it holds. Create a new service instance with it, and copy the data.")
	RefuseUpgradeFirst = text(Unprocessable, "The version of the plan that this service instance has does not know the "+
		"parameter %s: upgrade first, by an update with maintenance_info.version %s.")
	RefuseUnknownHere = text(Unprocessable, "The version of the plan that this service instance has does not know the "+
		"parameter %s, and there is no upgrade; leave it out, or create a new service instance.")
	RefuseMaintenance = text(MaintenanceInfoConflict,
		"The maintenance_info.version is not the one of the plan in the catalog; fetch the catalog again and repeat the request.")
	RefuseAsyncRequired = text(AsyncRequired, AsyncRequiredSentence)
	RefuseRequiresApp   = text(RequiresApp, RequiresAppSentence)
	RefuseIDsMissing    = text(BadRequest, "The query parameters service_id and plan_id are required and must not be empty.")
	RefusePartUnknown   = text(Unprocessable,
		"The parameters of this service instance were lost; an update must give all of them, and not only those that change.")
	RefuseNoPredecessor = text(BadRequest, "There is no service binding with the id of predecessor_binding_id on this service "+
		"instance.")
	RefusePredecessorOld = text(BadRequest, "The service binding of predecessor_binding_id has expired; create a binding "+
		"without it.")
	RefuseTakenOver = text(BadRequest, "Parameters and bind_resource are taken over from the predecessor; leave them out.")

	// The record does not allow the request.
	RefuseMissing       = text(NotFound, "There is no %s with this id.")
	RefuseOtherInstance = text(Conflict, "A service instance with this id exists with other attributes; use another id or "+
		"update it.")
	RefuseOtherBinding = text(Conflict, "A service binding with this id exists with other attributes; use another id.")
	RefuseBoundElse    = text(Conflict, "A binding with this id exists on another service instance; use another id.")
	RefuseConcurrent   = text(ConcurrencyError, ConcurrencySentence)
	RefuseDeletedLater = text(ConcurrencyError, "A later request deleted this %s.")
	RefuseEarlier      = text(ConcurrencyError, "The request is older than this %s and was meant for an earlier one with "+
		"this id, which was deleted; repeat it if it is meant for this one.")
	RefuseHalfMade    = text(Unprocessable, "The %s could not be created; delete it.")
	RefuseHalfDeleted = text(Unprocessable, "The %s could not be deleted completely; delete it again.")
	RefuseUnusable    = text(Unprocessable, "The service instance is unusable since its last update failed; update it again or "+
		"delete it.")
	RefuseLost = text(Unprocessable, "The credentials of this service binding were lost; rotate it, or unbind it and "+
		"bind again.")
	RefuseGone = text(Gone, "")

	// The operation failed, was cancelled, or is not known.
	RefuseNoOperation = text(NotFound, "There is no operation with this token.")
	RefuseFinished    = text(Conflict, "The operation is finished and cannot be cancelled.")
	RefuseNoCreation  = text(Conflict, "Only a creation can be cancelled, not the %s.")
	RefuseCancelled   = text(ConcurrencyError, "The operation was cancelled by a later deletion.")
	RefuseFailed      = text(OperationFailed, "%s") // the provider's message
	RefuseUndone      = text(OperationFailed,
		"The %s could not be created in time and is being removed; try again, if possible with accepts_incomplete=true.")
	RefuseLong = text(OperationFailed, "The %s takes longer than this request can wait and goes on; "+
		"repeat the request to see how it ends, or send accepts_incomplete=true.")
)
