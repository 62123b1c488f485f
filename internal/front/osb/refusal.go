package osb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// answers is the only place that maps reasons to a status and an error code.
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

// internalSentence is all that a client learns of an internal error, besides the id under which the
// log has the details (ERR-12).
const internalSentence = "The service broker met an internal error."

// concurrencyPause is how long a client waits before it repeats a request that met another one.
const concurrencyPause = 5 * time.Second

// statusClientWentAway is logged, as other servers do, for an answer whose client has hung up.
const statusClientWentAway = 499

// malformed refuses a request that is not as the API defines it.
func malformed(format string, args ...any) *lifecycle.Refusal {
	return lifecycle.Refuse(lifecycle.BadRequest, format, args...)
}

// A failureBody is the body of every error (ERR-02). The flags are pointers because false is the
// value that carries information (ERR-10).
type failureBody struct {
	Error            string `json:"error,omitempty"`
	Description      string `json:"description,omitempty"`
	InstanceUsable   *bool  `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool  `json:"update_repeatable,omitempty"`
}

// refusal turns an error into an answer. Any error but a Refusal is internal.
func (s *Server) refusal(ctx context.Context, err error, c *call) response {
	refused, known := errors.AsType[*lifecycle.Refusal](err)
	switch {
	// The client has hung up, which is not the broker's fault. An expired deadline is not a hang-up.
	// An operation that was committed goes on.
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		s.Log.InfoContext(ctx, "the client went away before the answer", "route", c.at.name)
		return response{status: statusClientWentAway}
	case !known || refused.Reason == lifecycle.Internal:
		id := s.NewID()
		s.Log.ErrorContext(ctx, "internal error", "id", id, "route", c.at.name, "error", err)
		refused = lifecycle.Refuse(lifecycle.Internal, "%s Try again; if the error persists, tell the operator this id: %s",
			internalSentence, id)
	}
	answer := answers[refused.Reason]
	body := failureBody{Error: answer.code, Description: refused.Message}
	if refused.Reason == lifecycle.ConcurrencyError {
		c.also = []header{{"Retry-After", seconds(concurrencyPause)}} // CONC-04
	}
	if refused.Reason == lifecycle.AsyncRequired && c.at.name == "binding" && c.version < asynchronousBindings {
		// The client may well permit asynchronous answers: it is its API version that is too old.
		body.Description += fmt.Sprintf(" Asynchronous bindings need version 2.%d of the API or later.",
			asynchronousBindings)
	}
	if c.version >= failureDetails {
		body.InstanceUsable, body.UpdateRepeatable = refused.InstanceUsable, refused.UpdateRepeatable
	}
	return response{status: answer.status, header: c.also, body: body}
}
