package osb

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A pollBody is what last_operation says. The description is left out rather
// than empty (LOP-21).
type pollBody struct {
	State            lifecycle.Phase `json:"state"`
	Description      string          `json:"description,omitempty"`
	InstanceUsable   *bool           `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool           `json:"update_repeatable,omitempty"`
}

// lastOperation answers a poll (LOP-*, LOB-*): always 200 while the record is known, whatever became of the operation (LOP-03,
// LOP-04).
func (s *Server) lastOperation(ctx context.Context, c *call) (response, error) {
	token := c.hint("operation")
	if len(token) > limits.Token { // LOP-17
		return response{}, lifecycle.Refuse(lifecycle.BadRequest,
			"The query parameter operation is longer than %d characters.", limits.Token)
	}
	p, err := s.Broker.LastOperation(ctx, c.key(), token)
	if err != nil {
		return response{}, err
	}
	logs.AddOperation(ctx, p.Token)
	op := p.Operation
	body := pollBody{State: op.Phase, Description: describe(op)}
	if c.version.knows(failureDetails) && op.Phase == lifecycle.Failed {
		body.InstanceUsable, body.UpdateRepeatable = op.InstanceUsable, op.UpdateRepeatable
	}
	resp := response{status: http.StatusOK, body: body}
	if op.Phase == lifecycle.InProgress {
		resp.header = []header{{"Retry-After", seconds(p.RetryAfter)}}
	}
	return resp, nil
}

func describe(op lifecycle.Operation) string {
	if op.Description == "" && op.Phase == lifecycle.InProgress {
		return "The " + string(op.Kind) + " was accepted and is about to start."
	}
	return op.Description
}

// A statusBody is the resource of the status façade (FAC-04).
type statusBody struct {
	Status status `json:"status"`
	// EstimatedCompletion and Links are hints while the operation runs (FAC-05).
	EstimatedCompletion *time.Time      `json:"estimatedCompletionTime,omitempty"`
	Links               map[string]link `json:"links,omitempty"`
	// Error and Description come with a failure (FAC-09).
	Error       string `json:"error,omitempty"`
	Description string `json:"description,omitempty"`
}

// A link is what can be done with an operation. Its reference is relative to
// the resource that it stands on: what a gateway puts before the path is not
// known here.
type link struct {
	Href   string `json:"href"`
	Method string `json:"method"`
}

type status struct {
	State      string      `json:"state"`
	Conditions []condition `json:"conditions"`
}

type condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // True, False or Unknown
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
}

// The names of states in progress (FAC-19).
var pendingStates = map[lifecycle.Kind]string{
	lifecycle.Provision: "Creating", lifecycle.Update: "Updating", lifecycle.Deprovision: "Deleting",
	lifecycle.Bind: "Binding", lifecycle.Unbind: "Unbinding",
}

// getOperation answers a GET of a status (FAC-*): the same operation as last_operation,
// on a resource of its own, with the answers of an asynchronous request-reply.
func (s *Server) getOperation(ctx context.Context, c *call) (response, error) {
	p, err := s.Broker.Operation(ctx, c.Caller, c.ids[0])
	if err != nil {
		return response{}, err
	}
	logs.AddSubject(ctx, p.Token.Key.Platform, p.Token.Key.Instance, p.Token.Key.Binding)
	logs.AddOperation(ctx, p.Token)
	op := p.Operation
	done := condition{Type: "Completed", LastTransitionTime: op.Started.UTC()}
	if !op.Settled.IsZero() {
		done.LastTransitionTime = op.Settled.UTC()
	}
	switch {
	case op.Phase == lifecycle.InProgress:
		return s.pending(p, done), nil
	case op.Phase == lifecycle.Failed:
		return failedStatus(op, done), nil
	case op.Kind.Deletes(): // nothing is left to redirect to (FAC-08)
		return completed(done, "Deleted", http.StatusOK), nil
	default:
		return completed(done, "Succeeded", http.StatusFound, header{"Location", resource(p.Token.Key)}), nil
	}
}

func (s *Server) pending(p broker.Poll, done condition) response {
	done.Status, done.Reason, done.Message = "False", "InProgress", describe(p.Operation)
	body := statusBody{Status: status{State: pendingStates[p.Operation.Kind], Conditions: []condition{done}}}
	if expected := p.Operation.Started.Add(p.Operation.Expected).UTC(); expected.After(s.Now()) {
		body.EstimatedCompletion = &expected
	}
	if p.Operation.Kind == lifecycle.Provision || p.Operation.Kind == lifecycle.Bind {
		body.Links = map[string]link{"cancel": {Href: "./" + url.PathEscape(p.Token.String()), Method: http.MethodDelete}}
	}
	return response{
		status: http.StatusAccepted,
		header: []header{{"Location", location("operations", p.Token.String())}, {"Retry-After", seconds(p.RetryAfter)}},
		body:   body,
	}
}

// cancelOperation is FAC-10. While what was made so far is being removed, the
// answer says where that is seen; the cancelled operation itself has failed
// already, on this resource as in last_operation (FAC-15).
func (s *Server) cancelOperation(ctx context.Context, c *call) (response, error) {
	p, deletion, err := s.Broker.Cancel(ctx, c.Caller, c.ids[0])
	if err != nil {
		return response{}, err
	}
	logs.AddSubject(ctx, p.Token.Key.Platform, p.Token.Key.Instance, p.Token.Key.Binding)
	done := condition{
		Type: "Completed", Status: "False", LastTransitionTime: p.Operation.Settled.UTC(), Reason: "OperationCancelled",
		Message: p.Operation.Description,
	}
	if deletion == nil {
		return response{status: http.StatusOK,
			body: statusBody{Status: status{State: "Cancelled", Conditions: []condition{done}}}}, nil
	}
	return response{
		status: http.StatusAccepted,
		header: []header{
			{"Location", location("operations", deletion.Token.String())}, {"Retry-After", seconds(deletion.RetryAfter)},
		},
		body: statusBody{Status: status{State: "Cancelling", Conditions: []condition{done}}},
	}, nil
}

func completed(done condition, state string, code int, header ...header) response {
	done.Status, done.Reason, done.Message = "True", state, "The operation is complete."
	return response{status: code, header: header, body: statusBody{Status: status{State: state, Conditions: []condition{done}}}}
}

// failedStatus keeps a failure as a 4xx each time it is read (FAC-09, FAC-11).
func failedStatus(op lifecycle.Operation, done condition) response {
	state, code, reason := "Failed", http.StatusUnprocessableEntity, "OperationFailed"
	if op.Cancelled {
		state, code, reason = "Cancelled", http.StatusConflict, "OperationCancelled"
	}
	done.Status, done.Reason, done.Message = "False", reason, op.Description
	return response{status: code, body: statusBody{
		Status: status{State: state, Conditions: []condition{done}}, Error: reason, Description: op.Description,
	}}
}
