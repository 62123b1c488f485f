package main

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
)

// addRefusals adds the answers that the gateway gives itself, before the function is called or after it
// has failed. Platforms understand errors only in the broker's own form: JSON with a description. A kind
// without an entry has the answer of its class. The status codes are those of AWS.
func addRefusals(rest awsapigateway.RestApi) {
	for _, r := range []struct {
		kind                    awsapigateway.ResponseType
		description, retryAfter string // a number of seconds; empty for none
	}{
		{awsapigateway.ResponseType_DEFAULT_4XX(),
			"The service broker does not accept this request, or not from this address.", ""},
		{awsapigateway.ResponseType_DEFAULT_5XX(),
			"The service broker has failed, or did not answer in time. Whether the request had an effect is not known.", ""},
		{awsapigateway.ResponseType_THROTTLED(), "There are too many requests at once. Repeat this one after some seconds.", "5"},
	} {
		// The headers are those of the broker's own answers (RID-01). A request without an identity gets none.
		headers := map[string]*string{
			"X-Broker-API-Request-Identity": new("method.request.header.X-Broker-API-Request-Identity"),
			"Cache-Control":                 new("'no-store'"),
		}
		if r.retryAfter != "" {
			headers["Retry-After"] = new("'" + r.retryAfter + "'")
		}
		body, _ := json.Marshal(map[string]string{"description": r.description}) // texts can always be encoded
		rest.AddGatewayResponse(new("Refusal-"+*r.kind.ResponseType()), &awsapigateway.GatewayResponseOptions{
			Type: r.kind, ResponseHeaders: &headers,
			Templates: &map[string]*string{"application/json": new(string(body))},
		})
	}
}
