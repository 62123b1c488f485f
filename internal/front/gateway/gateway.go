// Package gateway turns events of API Gateway into requests of net/http, and the responses back
// into answers. It owns the escaping of paths, the part of a path that the gateway keeps to itself,
// and the time at which the gateway received the request. No event makes the function fail:
// platforms would have to assume that the broker may have done anything.
package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/front/osb"
)

// BasePathVariable is the stage variable that names the path which clients put before the broker's
// own paths. It is set where that path is neither empty nor the stage's name: a custom domain maps
// the path to the stage, or a proxy strips it. The path begins with a slash and does not end with
// one.
const BasePathVariable = "basePath"

// A Handler answers events of a REST API's proxy integration. Its error is
// always nil.
type Handler func(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// answerTime is how long before the function's own deadline the request's context ends: a function
// that is stopped answers nothing, and the gateway tells its caller 502.
const answerTime = time.Second

// New makes a handler that serves events by next.
func New(next http.Handler, log *slog.Logger) Handler {
	adapter := httpadapter.New(next)
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (response events.APIGatewayProxyResponse, _ error) {
		defer func() {
			if p := recover(); p != nil {
				_ = logs.Panicked(ctx, log, p)
				response = refusal(event, http.StatusInternalServerError, "The service broker met an internal error.")
			}
		}()
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
			defer cancel()
		}
		base, path := split(event)
		path, problem := escaped(path)
		if problem != "" {
			return refusal(event, http.StatusBadRequest, problem), nil
		}
		event.Path = path
		// A method that net/http cannot carry would end in an adapter error.
		if !isToken(event.HTTPMethod) {
			return refusal(event, http.StatusBadRequest, "The request has no valid method."), nil
		}
		var arrived osb.Arrival
		if domain := event.RequestContext.DomainName; domain != "" {
			arrived.Origin = "https://" + domain + base
		}
		if at := event.RequestContext.RequestTimeEpoch; at > 0 {
			arrived.Received = time.UnixMilli(at).UTC()
		}
		response, err := adapter.ProxyWithContext(osb.WithArrival(ctx, arrived), event)
		if err != nil {
			// The cause may quote the path or the body.
			log.Error("event could not be turned into a request")
			return refusal(event, http.StatusBadRequest, "The request could not be read."), nil
		}
		// The answer to a HEAD has a Content-Length; the gateway counts the bytes of bodies itself.
		delete(response.MultiValueHeaders, "Content-Length")
		for i, location := range response.MultiValueHeaders["Location"] {
			if strings.HasPrefix(location, "/") {
				response.MultiValueHeaders["Location"][i] = base + location // NFR-04
			}
		}
		return response, nil
	}
}

// split returns the path that clients put before the broker's paths, and the path of the broker.
func split(event events.APIGatewayProxyRequest) (base, path string) {
	if base = strings.TrimRight(event.StageVariables[BasePathVariable], "/"); base != "" {
		// A custom domain leaves the base in the path; a proxy strips it.
		if rest, ok := strings.CutPrefix(event.Path, base); ok && (rest == "" || rest[0] == '/') {
			return base, rest
		}
		return base, event.Path
	}
	// The path that the client sent ends with the path that the function is given.
	if base, ok := strings.CutSuffix(event.RequestContext.Path, event.Path); ok {
		return strings.TrimRight(base, "/"), event.Path
	}
	if stage := event.RequestContext.Stage; stage != "" {
		base = "/" + stage
	}
	return base, event.Path
}

// escaped makes the path of an event fit for a URL. REST APIs pass paths on as they were sent;
// other sources decode them first. A character that can never stand in an encoded path is therefore
// encoded, lest it begin a query or a fragment, and a percent sign that encodes nothing is refused.
// The problem says what is wrong with the path; it is empty if nothing is.
func escaped(path string) (_, problem string) {
	if _, err := url.PathUnescape(path); err != nil {
		return "", "The path is not valid percent-encoded text."
	}
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c < ' ' || c == 0x7f:
			return "", "The path has a control character, which none may have."
		case strings.IndexByte("?#\"<>\\^`{|} ", c) >= 0 || c >= 0x80:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

func isToken(method string) bool {
	return method != "" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") == ""
}

// refusal is an answer that the gateway gives itself. Like every answer, it carries the request's
// identity (RID-01).
func refusal(event events.APIGatewayProxyRequest, status int, description string) events.APIGatewayProxyResponse {
	body, _ := json.Marshal(map[string]string{"description": description}) // a map of strings can always be encoded
	sent := http.Header{}
	for name, values := range event.MultiValueHeaders {
		sent[http.CanonicalHeaderKey(name)] = values
	}
	headers := map[string][]string{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}}
	if id := osb.RequestIdentity(sent); id != "" {
		headers[osb.HeaderRequestIdentity] = []string{id}
	}
	return events.APIGatewayProxyResponse{
		StatusCode:        status,
		MultiValueHeaders: headers,
		Body:              string(body) + "\n",
	}
}
