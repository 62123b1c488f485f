package osb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// The one place where reasons become status and error code.
var answers = map[lifecycle.Reason]struct {
	status int
	code   string
}{
	lifecycle.Internal:                {http.StatusInternalServerError, ""},
	lifecycle.OperationFailed:         {http.StatusInternalServerError, "OperationFailed"},
	lifecycle.BadRequest:              {http.StatusBadRequest, "BadRequest"},
	lifecycle.Unauthorized:            {http.StatusUnauthorized, "Unauthorized"},
	lifecycle.NotFound:                {http.StatusNotFound, "NotFound"},
	lifecycle.MethodNotAllowed:        {http.StatusMethodNotAllowed, "MethodNotAllowed"},
	lifecycle.Conflict:                {http.StatusConflict, "Conflict"},
	lifecycle.Gone:                    {http.StatusGone, ""},
	lifecycle.VersionUnsupported:      {http.StatusPreconditionFailed, "VersionNotSupported"},
	lifecycle.TooLarge:                {http.StatusRequestEntityTooLarge, "RequestTooLarge"},
	lifecycle.Unprocessable:           {http.StatusUnprocessableEntity, "NotAllowed"},
	lifecycle.TooManyRequests:         {http.StatusTooManyRequests, "TooManyRequests"},
	lifecycle.AsyncRequired:           {http.StatusUnprocessableEntity, "AsyncRequired"},
	lifecycle.ConcurrencyError:        {http.StatusUnprocessableEntity, "ConcurrencyError"},
	lifecycle.RequiresApp:             {http.StatusUnprocessableEntity, "RequiresApp"},
	lifecycle.MaintenanceInfoConflict: {http.StatusUnprocessableEntity, "MaintenanceInfoConflict"},
}

// internalSentence is all that a client learns of an internal error, besides
// the name under which the log has the rest (ERR-12).
const internalSentence = "The service broker met an internal error."

// concurrencyPause is when to repeat a request that met another one.
const concurrencyPause = 5 * time.Second

// statusClientWentAway stands in the log where an answer would: nobody is left to
// read it. It is what other servers write there.
const statusClientWentAway = 499

// wentAway reports whether a request came to nothing because its client had hung
// up, which is no fault of the broker's. A deadline is another matter. What was
// committed goes on.
func wentAway(r *http.Request, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(r.Context().Err(), context.Canceled)
}

// tooMany is of a platform that asks more than it may.
type tooMany struct{ wait time.Duration }

func (*tooMany) Error() string { return "too many requests" }

// methodNotAllowed carries the Allow header.
type methodNotAllowed struct{ allow string }

func (*methodNotAllowed) Error() string { return "method not allowed" }

// A failureBody is the body of every error (ERR-02). The flags are pointers,
// since false is the value that says something (ERR-10).
type failureBody struct {
	Error            string `json:"error,omitempty"`
	Description      string `json:"description,omitempty"`
	InstanceUsable   *bool  `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool  `json:"update_repeatable,omitempty"`
}

// refusal turns an error into an answer. What is not a Refusal is internal.
func (s *Server) refusal(ctx context.Context, err error, r *http.Request, at route) response {
	var refused *lifecycle.Refusal
	var method *methodNotAllowed
	var many *tooMany
	var headers []header
	switch {
	case wentAway(r, err):
		s.Log.InfoContext(ctx, "client went away before it was answered", "route", at.name)
		return response{status: statusClientWentAway}
	case errors.As(err, &method):
		headers = []header{{"Allow", method.allow}}
		refused = lifecycle.Refuse(lifecycle.MethodNotAllowed,
			"This path does not support the method; it supports %s.", method.allow)
	case errors.As(err, &many):
		headers = []header{{"Retry-After", seconds(many.wait)}}
		refused = lifecycle.Refuse(lifecycle.TooManyRequests,
			"This platform sends more requests than it may. Repeat this one later.")
	case !errors.As(err, &refused) || refused.Reason == lifecycle.Internal:
		id := s.NewID()
		s.Log.ErrorContext(ctx, "internal error", "id", id, "route", at.name, "error", err)
		refused = lifecycle.Refuse(lifecycle.Internal, "%s Try again; if it stays, tell the operator this id: %s",
			internalSentence, id)
	}
	answer := answers[refused.Reason]
	body := failureBody{Error: answer.code, Description: refused.Message}
	if refused.Reason == lifecycle.ConcurrencyError {
		headers = []header{{"Retry-After", seconds(concurrencyPause)}} // CONC-04
	}
	if refused.Reason == lifecycle.Unauthorized {
		headers = []header{{"WWW-Authenticate", `Basic realm="service broker", charset="UTF-8"`}}
	}
	v, err := apiVersion(r.Header)
	if refused.Reason == lifecycle.AsyncRequired && at.name == "binding" && err == nil && !v.knows(asynchronousBindings) {
		// The client may have permitted it: what it lacks is not its permission.
		body.Description += fmt.Sprintf(" Bindings are made and removed asynchronously from version 2.%d of the API on.",
			asynchronousBindings)
	}
	if err == nil && v.knows(failureDetails) {
		body.InstanceUsable, body.UpdateRepeatable = refused.InstanceUsable, refused.UpdateRepeatable
	}
	return response{status: answer.status, header: headers, body: body}
}
