package conformance

import (
	"fmt"
	"strings"
)

// A wording replaces a sentence, or the title of a section, in the table of sources for versions up
// to a minor version.
type wording struct {
	to   int
	text string
}

// in returns a source as it reads in the document of one minor version.
func (s Source) in(minor int) Source {
	if s.Document != osb && s.Document != cf {
		return s
	}
	s.Document = fmt.Sprintf("%s v2.%d", osb, minor)
	if minor < firstOSB {
		s.Document = fmt.Sprintf("%s v2.%d", cf, minor)
	}
	head, rest, cut := strings.Cut(s.Section, ", ")
	if s.Section = worded(head, minor); cut {
		s.Section += ", " + rest
	}
	s.Sentence = worded(s.Sentence, minor)
	return s
}

// firstOSB is the first minor version with a document of its own; earlier versions are documented by Cloud Foundry.
const firstOSB = 11

func worded(text string, minor int) string {
	for _, w := range wordings[text] {
		if minor <= w.to {
			return w.text
		}
	}
	return text
}

// wordings are the wordings of earlier versions, the earliest first.
var wordings = map[string][]wording{
	sSync: {{10, sAsync}}, sAuth: {{13, "Authentication"}}, sErrors: {{13, sErrors29}}, sPoll: {{13, "Polling Last Operation"}},
	sOffering: {{10, sCatalog}, {13, "Service Objects"}, {14, "Service Object"}}, sPlan: {{10, sCatalog}, {14, "Plan Object"}},
	sSchema: {{13, "Input Parameters Object"}}, "Schemas Object": {{13, "Schema Object"}},

	"This header allows Service Brokers to reject requests from Platforms for versions they do not support.": {
		{9, "This header will be useful in future minor revisions of the API to allow brokers to reject requests from Cloud " +
			"Controllers that they do not understand."},
		{13, "This header allows brokers to reject requests from marketplaces for versions they do not support."}},
	"The broker is responsible for checking the username and password and returning a `401 Unauthorized` message if " +
		"credentials are invalid.": {
		{9, "The broker is responsible for checking the username and password and returning a `401 Unauthorized` message if " +
			"credentials are invalid."},
		{12, "The broker is responsible for validating the username and password and returning a `401 Unauthorized` message if " +
			"credentials are invalid."}},
	"If authentication is used, the Service Broker MUST authenticate the request using the predetermined authentication " +
		"mechanism, and MUST return a `401 Unauthorized` response if the authentication fails.": {
		{13, "If authentication is used, the broker MUST authenticate the request using the predetermined authentication " +
			"mechanism and MUST return a `401 Unauthorized` response if the authentication fails."}},
	"While the communication between a Platform and Service Broker MAY be unsecure, it is RECOMMENDED that all " +
		"communications between a Platform and a Service Broker are secured via TLS and authenticated.": {
		{13, "While the communication between a platform and broker MAY be unsecure, it is RECOMMENDED that all communications " +
			"between a platform and a broker are secured via TLS and authenticated."}},
	"For any OSBAPI request that is the result of an action taken by a Platform's user, there MUST be an associated " +
		"`X-Broker-API-Originating-Identity` header on that HTTP request.": {
		{13, "For any OSB API request that is the result of an action taken by a platform's user, there MUST be an associated " +
			"`OriginatingIdentity` header on that HTTP request."}},
	"Any OSBAPI request that is not associated with an action from a Platform's user, such as the Platform refetching the " +
		"catalog, MAY exclude the header from that HTTP request.": {
		{13, "Any OSB API request that is not associated with an action from a platform's user, such as the platform querying " +
			"the marketplace, MAY exclude the header from that HTTP request."}},
	"All response bodies must be a valid JSON Object (`{}`).": {
		{11, "All response bodies must be a valid JSON Object (`{}`)."},
		{13, "All response bodies MUST be a valid JSON Object (`{}`)."}},
	"If an empty JSON object is returned in the body `{}`, a generic message containing the HTTP response code returned by the " +
		"broker will be displayed to the requestor.": {
		{10, "If an empty JSON object is returned in the body `{}`, a generic message containing the HTTP response code " +
			"returned by the broker will be displayed to the requestor."},
		{13, "If an empty JSON object is returned in the body `{}`, a generic message containing the HTTP response code " +
			"returned by the broker will be displayed to the requester."}},
	"These fields must be optional and should be ignored by clients and servers that do not understand them.": {
		{11, "These fields must be optional and should be ignored by clients and servers that do not understand them."},
		{13, "These fields MUST be OPTIONAL and SHOULD be ignored by clients and servers that do not understand them."}},

	"tags | array of strings":   {{10, "tags array-of-strings"}, {13, "tags | array-of-strings"}},
	"metadata | object":         {{10, "metadata object"}, {13, "metadata | JSON object"}},
	"plan_updateable | boolean": {{10, "plan_updateable boolean"}},
	"free | boolean":            {{10, "free boolean"}},
	"operation | string":        {{10, "operation string"}},
	"This must be unique within Cloud Foundry": {{10, "This must be unique within Cloud Foundry"},
		{11, "This must be globally unique within a platform marketplace."}},
	"service_instance | ServiceInstanceSchema": {{13, "service_instance | object"}},
	"MUST contain at least one Service Plan.":  {{14, "MUST contain at least one plan."}},
	"This MUST be globally unique such that Platforms (and their users) MUST be able to assume that seeing the same value (no " +
		"matter what Service Broker uses it) will always refer to this Service Offering": {
		{12, "This MUST be globally unique within a platform marketplace."}, {13, "This MUST be globally unique."},
		{14, "This MUST be globally unique such that Platforms (and their users) MUST be able to assume that seeing the same " +
			"value (no matter what Service Broker uses it) will always refer to this service."}},
	"This MUST be globally unique such that Platforms (and their users) MUST be able to assume that seeing the same value (no " +
		"matter what Service Broker uses it) will always refer to this Service Plan and for the same Service Offering": {
		{12, "This MUST be globally unique within a platform marketplace."}, {13, "This MUST be globally unique."},
		{14, "This MUST be globally unique such that Platforms (and their users) MUST be able to assume that seeing the same " +
			"value (no matter what Service Broker uses it) will always refer to this plan and for the same service."}},
	"Likewise, a Service Broker MUST NOT change the `id` of a resource across queries, otherwise a Platform will treat it as a " +
		"different resource.": {
		{13, "Likewise, a broker MUST NOT change the `id` of a resource across queries, otherwise a platform will treat it as " +
			"a different resource."}},
	"Whether the Service Offering supports upgrade/downgrade for Service Plans by default.": {
		{14, "Whether the service supports upgrade/downgrade for some plans."}},

	"Support for synchronous or asynchronous responses MAY vary by Service Offering, even by Service Plan.": {
		{11, "Support for synchronous or asynchronous responses may vary by service offering, even by service plan."},
		{13, "Support for synchronous or asynchronous responses MAY vary by service offering, even by service plan."}},
	"Service Brokers that support synchronous responses for provision, update, and delete can ignore the " +
		"`accepts_incomplete=true` query parameter if it is provided by the client.": {
		{10, "The broker can then choose to execute the request synchronously or asynchronously."},
		{12, "Brokers that support sychronous responses for provision, update, and delete can ignore the " +
			"`accepts_incomplete=true` query parameter if it is provided by the client."},
		{13, "Brokers that support synchronous responses for provision, update, and delete can ignore the " +
			"`accepts_incomplete=true` query parameter if it is provided by the client."}},
	"The parameter `accepts_incomplete=true` must be passed in a request by the CF API client": {
		{10, "The parameter `accepts_incomplete=true` must be passed in a request by the CF API client"},
		{11, "For a broker to return an asynchronous response, the query parameter `accepts_incomplete=true` must be included " +
			"the request."}},
	"For a Service Broker to return an asynchronous response, the query parameter `accepts_incomplete=true` MUST be included " +
		"the request.": {
		{13, "For a broker to return an asynchronous response, the query parameter `accepts_incomplete=true` MUST be included " +
			"the request."}},
	"If the broker executes the request asynchronously, the response must use the status code `202 ACCEPTED`": {
		{10, "If the broker executes the request asynchronously, the response must use the status code `202 ACCEPTED`"},
		{11, "If the query parameter described above is present, and the broker executes the request asynchronously, the " +
			"broker must return the asynchronous response `202 ACCEPTED`."}},
	"If the `accepts_incomplete=true` parameter is not included, and the broker cannot fulfill the request synchronously " +
		"(guaranteeing that the operation is complete on response), then the broker should reject the request with the status " +
		"code `422 UNPROCESSABLE ENTITY` and the following body": {
		{10, "If the `accepts_incomplete=true` parameter is not included, and the broker cannot fulfill the request " +
			"synchronously (guaranteeing that the operation is complete on response), then the broker should reject the " +
			"request with the status code `422 UNPROCESSABLE ENTITY` and the following body"},
		{11, "If the parameter is not included or is set to `false`, and the broker cannot fulfill the request synchronously " +
			"(guaranteeing that the operation is complete on response), then the broker should reject the request with the " +
			"status code `422 UNPROCESSABLE ENTITY` and the following body"},
		{13, "If the parameter is not included or is set to `false`, and the broker cannot fulfill the request synchronously " +
			"(guaranteeing that the operation is complete on response), then the broker SHOULD reject the request with the " +
			"status code `422 Unprocessable Entity` and the following body"}},
	"If a Service Broker receives a request that it is not able to process due a concurrency issue then the Service Broker " +
		"MUST reject the request with a HTTP `422 Unprocessable Entity` and a response body containing error code " +
		"`\"ConcurrencyError\"`": {
		{14, "If a Service Broker receives a request that it is not able to process due to other activity being done on that " +
			"resource then the Service Broker MUST reject the request with a HTTP `422 Unprocessable Entity` and a response " +
			"body containing error code `\"ConcurrencyError\"`"}},
	"Appropriate only for asynchronous delete requests.": {{10, "Appropriate only for asynchronous delete requests."},
		{11, "Appropriate only for asynchronous delete operations."}},

	"Service instance has been created.": {{10, "Service instance has been created."},
		{11, "Service instance has been provisioned."}},
	"MUST be returned if the Service Instance was provisioned as a result of this request.": {
		{13, "MUST be returned if the service instance was provisioned as a result of this request."}},
	"MUST be returned if the Service Instance provisioning is in progress.": {
		{13, "MUST be returned if the service instance provisioning is in progress."}},
	"Should be returned if the requested service instance already exists.": {
		{10, "Should be returned if the requested service instance already exists."},
		{11, "Should be returned if a service instance with the same id already exists but with different attributes."}},
	"MUST be returned if a Service Instance with the same id already exists or is being provisioned but with different " +
		"attributes.": {
		{13, "MUST be returned if a service instance with the same id already exists but with different attributes."},
		{14, "MUST be returned if a Service Instance with the same id already exists but with different attributes."}},
	"Note that a re-sent `PUT` request MUST return a `202 Accepted`, not a `200 OK`, if the Service Instance is not yet fully " +
		"provisioned.": {
		{13, "Note that a re-sent `PUT` request MUST return a `202 Accepted`, not a `200 OK`, if the service instance is not " +
			"yet fully provisioned."}},
	"MUST be returned if the Service Broker only supports asynchronous provisioning for the requested Service Plan and the " +
		"request did not include `?accepts_incomplete=true`. The response body MUST contain error code `\"AsyncRequired\"`": {
		{13, "MUST be returned if the broker only supports asynchronous provisioning for the requested plan and the request " +
			"did not include `?accepts_incomplete=true`. The expected response body is: `{ \"error\": \"AsyncRequired\""},
		{14, "MUST be returned if the Service Broker only supports asynchronous provisioning for the requested plan and the " +
			"request did not include `?accepts_incomplete=true`. The response body MUST contain error code `\"AsyncRequired\"`"}},
	"Service Brokers SHOULD ensure that the client has provided valid configuration parameters and values for the operation.": {
		{13, "Brokers SHOULD ensure that the client has provided valid configuration parameters and values for the operation."}},
	"Note: a Service Broker that wishes to return `dashboard_url` for a Service Instance MUST return it with the initial " +
		"response to the provision request, even if the service is provisioned asynchronously.": {
		{13, "Note: a broker that wishes to return `dashboard_url` for a service instance MUST return it with the initial " +
			"response to the provision request, even if the service is provisioned asynchronously."}},
	"For asynchronous responses, Service Brokers MAY return an identifier representing the operation.": {
		{10, "For async responses, service brokers can return operation state as a string."},
		{11, "For asynchronous responses, service brokers may return an identifier representing the operation."},
		{13, "For asynchronous responses, service brokers MAY return an identifier representing the operation."}},

	"Service Brokers MUST support this endpoint for all Service Plans of the Service Offering and this endpoint MUST be " +
		"available immediately after the Polling Last Operation for Service Instances endpoint returns `\"state\": " +
		"\"succeeded\"` for a Provisioning operation.": {
		{14, "Service Brokers MUST support this endpoint for all plans of the service and this endpoint MUST be available " +
			"immediately after the Polling Last Operation for Service Instances endpoint returns `\"state\": \"succeeded\"` " +
			"for a Provisioning operation."}},
	"The ID of the Service Plan from the catalog that is associated with the Service Instance.": {
		{14, "The ID of the plan from the catalog that is associated with the Service Instance."}},

	"New plan is effective.": {{10, "New plan is effective."}, {11, "The requests changes have been applied."}},
	"MUST be returned if the Service Instance update is in progress.": {
		{13, "MUST be returned if the service instance update is in progress."}},
	"May be returned if the particular plan change requested is not supported": {
		{10, "May be returned if the particular plan change requested is not supported"},
		{11, "May be returned if the requested change is not supported"}},
	"MUST be returned if the requested change is not supported or if the request cannot currently be fulfilled due to the " +
		"state of the Service Instance": {
		{13, "MUST be returned if the requested change is not supported or if the request cannot currently be fulfilled due to " +
			"the state of the service instance"}},
	"If this field is not present in the request message, then the Service Broker MUST NOT change the Service Plan of the " +
		"Service Instance as a result of this request.": {
		{13, "If this field is not present in the request message, then the broker MUST NOT change the plan of the instance as " +
			"a result of this request."},
		{14, "If this field is not present in the request message, then the Service Broker MUST NOT change the plan of the " +
			"instance as a result of this request."}},
	"if this field is not present in the request then the Service Broker MUST NOT change the parameters of the instance as a " +
		"result of this request.": {
		{13, "If this field is not present in the request message, then the broker MUST NOT change the parameters of the " +
			"instance as a result of this request."}},

	"MUST be returned if the Service Binding was created as a result of this request.": {
		{14, "MUST be returned if the binding was created as a result of this request."}},
	"SHOULD be returned if the Service Binding already exists and the requested parameters are identical to the existing " +
		"Service Binding.": {
		{14, "SHOULD be returned if the binding already exists and the requested parameters are identical to the existing " +
			"binding."}},
	"MUST be returned if a Service Binding with the same id, for the same Service Instance, already exists or is being created " +
		"but with different parameters.": {
		{13, "MUST be returned if a service binding with the same id, for the same service instance, already exists but with " +
			"different parameters."},
		{14, "MUST be returned if a Service Binding with the same id, for the same Service Instance, already exists but with " +
			"different parameters."}},
	"MUST be returned if the Service Broker requires that `app_guid` be included in the request body.": {
		{13, "MUST be returned if the broker requires that `app_guid` be included in the request body."}},
	"When a service key is created, the app id is not included.": {{10,
		"When a service key is created, the app id is not included."},
		{11, "Fields with an asterisk are required."}},
	"In some cases the Platform might not be able to provide this information at the time of the binding request, therefore " +
		"the `bind_resource` and its fields are OPTIONAL.": {
		{13, "In some cases the platform might not be able to provide this information at the time of the binding request, " +
			"therefore the `bind_resource` and its fields are OPTIONAL."}},
	"Otherwise, Platforms MUST NOT make a binding request to the Service Broker for any Service Instance using the given " +
		"Service Offering or Service Plan.": {
		{14, "Otherwise, Platforms MUST NOT make a binding request to the Service Broker for any Service Instance using the " +
			"given service or plan."}},
	"must be declared in the catalog endpoint or Cloud Foundry will consider the response invalid.": {
		{10, "must be declared in the catalog endpoint or Cloud Foundry will consider the response invalid."},
		{11, "MUST be declared in the Catalog endpoint or the platform can consider the response invalid."}},
	"MUST be declared in the Catalog endpoint or the Platform can consider the response invalid.": {
		{13, "MUST be declared in the Catalog endpoint or the platform can consider the response invalid."}},
	"Credentials SHOULD be unique whenever possible, so access can be revoked for each Service Binding without affecting " +
		"consumers of other Service Bindings for the Service Instance.": {
		{13, "Credentials SHOULD be unique whenever possible, so access can be revoked for each binding without affecting " +
			"consumers of other bindings for the service instance."},
		{14, "Credentials SHOULD be unique whenever possible, so access can be revoked for each binding without affecting " +
			"consumers of other bindings for the Service Instance."}},
	"A create binding response from a Service Broker that provides one of these services MUST include a `syslog_drain_url`.": {
		{13, "A create binding response from a service broker that provides one of these services MUST include a " +
			"`syslog_drain_url`."}},
	"A create Service Binding response from one of these services MUST include `volume_mounts`.": {
		{14, "A create binding response from one of these services MUST include `volume_mounts`."}},
	"If present, the string MUST follow ISO 8601 and this pattern: `yyyy-mm-ddThh:mm:ss.sZ`.": {
		{16, "If present, the string MUST follow ISO 8601 and this pattern: `yyyy-mm-ddThh:mm:ss.ssZ`"}},
	"Service Brokers MUST support this endpoint for all Service Offerings and Service Plans that support bindings " +
		"(`\"bindable\": true`)": {
		{14, "Service Brokers MUST support this endpoint for all services and plans that support bindings (`\"bindable\": " +
			"true`)"}},

	"MUST be returned if the Service Binding was deleted as a result of this request.": {
		{14, "MUST be returned if the binding was deleted as a result of this request."}},
	"MUST be returned if the Service Binding does not exist.": {{14, "MUST be returned if the binding does not exist."}},
	"When a broker receives a deprovision request from Cloud Controller, it should delete any resources it created during the " +
		"provision.": {
		{10, "When a broker receives a deprovision request from Cloud Controller, it should delete any resources it created " +
			"during the provision."},
		{11, "When a broker receives a deprovision request from the marketplace, it should delete any resources it created " +
			"during the provision."}},
	"When a Service Broker receives a deprovision request from a Platform, it MUST delete any resources it created during the " +
		"provision.": {
		{13, "When a broker receives a deprovision request from the marketplace, it MUST delete any resources it created " +
			"during the provision."}},
	"MUST be returned if the Service Instance was deleted as a result of this request.": {
		{13, "MUST be returned if the service instance was deleted as a result of this request."}},
	"MUST be returned if the Service Instance deletion is in progress.": {
		{13, "MUST be returned if the service instance deletion is in progress."}},
	"MUST be returned if the Service Instance does not exist.": {{13,
		"MUST be returned if the service instance does not exist."}},
	"MUST be returned if the Service Broker only supports asynchronous deprovisioning for the requested Service Plan and the " +
		"request did not include `?accepts_incomplete=true`. The response body MUST contain error code `\"AsyncRequired\"`": {
		{13, "MUST be returned if the broker only supports asynchronous deprovisioning for the requested plan and the request " +
			"did not include `?accepts_incomplete=true`. The expected response body is: `{ \"error\": \"AsyncRequired\""},
		{14, "MUST be returned if the Service Broker only supports asynchronous deprovisioning for the requested plan and the " +
			"request did not include `?accepts_incomplete=true`. The response body MUST contain error code `\"AsyncRequired\"`"}},
}
