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

// A pollBody is the body of a last_operation answer. An empty description is left out (LOP-21).
type pollBody struct {
	State            lifecycle.Phase `json:"state"`
	Description      string          `json:"description,omitempty"`
	InstanceUsable   *bool           `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool           `json:"update_repeatable,omitempty"`
}

// lastOperation answers a poll (LOP-*, LOB-*). The status is 200 as long as the record is known,
// whatever the outcome of the operation (LOP-03, LOP-04).
func lastOperation(ctx context.Context, c *call) (response, error) {
	// The token is a hint: a malformed query is never a reason to refuse a poll, since platforms
	// read a 400 as the failure of the operation (INP-05).
	token := c.URL.Query().Get("operation")
	if len(token) > limits.Token { // LOP-17
		return response{}, malformed("The query parameter operation is longer than %d characters.", limits.Token)
	}
	p, err := c.Broker.LastOperation(ctx, c.key, token)
	if err != nil {
		return response{}, err
	}
	logs.AddOperation(ctx, p.Token)
	op := p.Operation
	body := pollBody{State: op.Phase, Description: describe(op)}
	if c.version >= failureDetails && op.Phase == lifecycle.Failed {
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

// A statusBody is the resource that the status façade serves (FAC-04).
type statusBody struct {
	Status status `json:"status"`
	// EstimatedCompletion and Links are hints that are given while the operation runs (FAC-05).
	EstimatedCompletion *time.Time      `json:"estimatedCompletionTime,omitempty"`
	Links               map[string]link `json:"links,omitempty"`
	// Error and Description are set for a failed operation (FAC-09).
	Error       string `json:"error,omitempty"`
	Description string `json:"description,omitempty"`
}

// A link is an action on an operation. Its reference is relative to the operation's resource: the
// server does not know which path a gateway puts before its own.
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

// pendingStates names the states of operations in progress (FAC-19).
var pendingStates = map[lifecycle.Kind]string{
	lifecycle.Provision: "Creating", lifecycle.Update: "Updating", lifecycle.Deprovision: "Deleting",
	lifecycle.Bind: "Binding", lifecycle.Unbind: "Unbinding",
}

// getOperation answers a GET of a status (FAC-*). It shows the same operation as last_operation, as
// a resource of its own that follows the asynchronous request-reply pattern.
func getOperation(ctx context.Context, c *call) (response, error) {
	p, err := c.Broker.Operation(ctx, c.Caller, c.token)
	if err != nil {
		return response{}, err
	}
	logs.AddSubject(ctx, p.Token.Key.Platform, p.Token.Key.Instance, p.Token.Key.Binding)
	logs.AddOperation(ctx, p.Token)
	op := p.Operation
	switch {
	case op.Phase == lifecycle.InProgress:
		return pending(p, c.Now()), nil
	case op.Phase == lifecycle.Failed: // a 4xx each time that the status is read (FAC-09, FAC-11)
		state, code, reason := "Failed", http.StatusUnprocessableEntity, "OperationFailed"
		if op.Cancelled {
			state, code, reason = "Cancelled", http.StatusConflict, operationCancelled
		}
		body := statusOf(op, state, "False", reason, op.Description)
		body.Error, body.Description = reason, op.Description
		return response{status: code, body: body}, nil
	case op.Kind.Deletes(): // nothing is left to redirect to (FAC-08)
		return response{status: http.StatusOK, body: statusOf(op, "Deleted", "True", "Deleted", complete)}, nil
	default:
		return response{status: http.StatusFound, header: []header{{"Location", resource(p.Token.Key)}},
			body: statusOf(op, "Succeeded", "True", "Succeeded", complete)}, nil
	}
}

const (
	operationCancelled = "OperationCancelled"
	complete           = "The operation is complete."
)

// statusOf returns an operation's status with one condition: whether the operation is completed,
// and since when.
func statusOf(op lifecycle.Operation, state, completed, reason, message string) statusBody {
	since := op.Settled
	if since.IsZero() {
		since = op.Started
	}
	return statusBody{Status: status{State: state, Conditions: []condition{
		{Type: "Completed", Status: completed, LastTransitionTime: since.UTC(), Reason: reason, Message: message},
	}}}
}

func pending(p broker.Poll, now time.Time) response {
	body := statusOf(p.Operation, pendingStates[p.Operation.Kind], "False", "InProgress", describe(p.Operation))
	if expected := p.Operation.Started.Add(p.Operation.Expected).UTC(); expected.After(now) {
		body.EstimatedCompletion = &expected
	}
	if p.Operation.Kind == lifecycle.Provision || p.Operation.Kind == lifecycle.Bind {
		body.Links = map[string]link{"cancel": {Href: "./" + url.PathEscape(p.Token.String()), Method: http.MethodDelete}}
	}
	return response{status: http.StatusAccepted, header: lookAt(p.Token, p.RetryAfter), body: body}
}

// cancelOperation cancels an operation (FAC-10). The operation counts as failed at once, here as in
// last_operation (FAC-15); the answer says where to watch the removal of what the operation has
// made.
func cancelOperation(ctx context.Context, c *call) (response, error) {
	p, deletion, err := c.Broker.Cancel(ctx, c.Caller, c.token)
	if err != nil {
		return response{}, err
	}
	logs.AddSubject(ctx, p.Token.Key.Platform, p.Token.Key.Instance, p.Token.Key.Binding)
	body := statusOf(p.Operation, "Cancelled", "False", operationCancelled, p.Operation.Description)
	if deletion == nil {
		return response{status: http.StatusOK, body: body}, nil
	}
	body.Status.State = "Cancelling"
	return response{status: http.StatusAccepted, header: lookAt(deletion.Token, deletion.RetryAfter), body: body}, nil
}
