package conformance

import "slices"

// Sections of the documents.
const (
	sVersion   = "API Version Header"
	sAuth      = "Platform to Service Broker Authentication"
	sIdentity  = "Originating Identity"
	sRequest   = "Request Identity"
	sExtension = "Vendor Extension Fields"
	sURL       = "URL Properties"
	sErrors    = "Service Broker Errors"
	sContent   = "Content Type"
	sCatalog   = "Catalog Management"
	sOffering  = "Service Offering Object"
	sPlan      = "Service Plan Object"
	sSchema    = "Input Parameters Schema Object"
	sAsync     = "Asynchronous Operations"
	sSync      = "Synchronous Operations"
	sBlocking  = "Blocking Operations"
	sPoll      = "Polling Last Operation for Service Instances"
	sPollBind  = "Polling Last Operation for Service Bindings"
	sProvision = "Provisioning"
	sFetch     = "Fetching a Service Instance"
	sUpdate    = "Updating a Service Instance"
	sBind      = "Binding"
	sRotation  = "Binding Rotation"
	sFetchBind = "Fetching a Service Binding"
	sUnbind    = "Unbinding"
	sDelete    = "Deprovisioning"
	sErrors29  = "Broker Errors"
)

// Sentences that decide several rules.
var (
	mayReject = []Source{
		open(9, sVersion,
			"This header allows Service Brokers to reject requests from Platforms for versions they do not support.")}
	mayChoose = []Source{
		{Level: Recommended, From: 9, To: 14},
		open(15, sBlocking,
			"Service Brokers MAY choose the degree to which they support concurrent requests, ranging from not "+
				"supporting them at all to only supporting them in selective situations.")}
	noAsync = []Source{{Recommended, 9, 0, osb + " 2.14", "Changes Since v2.13",
		"Added support for asynchronous Service Bindings"}}
	onceOnly = []Source{
		{Level: Recommended, From: 9, To: 13},
		open(14, sBind,
			"Service Brokers MAY choose to only return the information that represents a Service Binding once, "+
				"either when the Service Binding is being created synchronously, or when the Service Binding is first "+
				"fetched")}
	mayInvalid = []Source{
		{Level: Recommended, From: 9, To: 15},
		open(16, "Response, 400 Bad Request", "MAY be returned if the request contains invalid data")}
	malformed = []Source{
		must(13, "Response, 400 Bad Request", "MUST be returned if the request is malformed or missing mandatory data.")}
	unlike    = []Source{{Level: Recommended, From: 9, To: 12}, malformed[0]}
	unchanged = []Source{
		must(14, sErrors,
			"Unless otherwise specified, an HTTP status code in the 4xx range MUST result in the Service Broker's "+
				"resources being semantically unchanged as a result of the incoming request message.")}
	thatCode = []Source{
		must(14, sErrors, "Where the specification defines the expected response code, that response code MUST be used.")}
	identified = []Source{
		must(13, sIdentity,
			"For any OSBAPI request that is the result of an action taken by a Platform's user, there MUST be an "+
				"associated `X-Broker-API-Originating-Identity` header on that HTTP request.")}
	unguessed = []Source{
		must(13, sAuth,
			"If authentication is used, the Service Broker MUST authenticate the request using the predetermined "+
				"authentication mechanism, and MUST return a `401 Unauthorized` response if the authentication fails.")}
	passwords = []Source{
		{Must, 9, 12, cf, "Authentication",
			"The broker is responsible for checking the username and password and returning a `401 Unauthorized` " +
				"message if credentials are invalid."}, unguessed[0]}
	// guarded are the sentences that make a broker a hazard if it accepts any password.
	guarded = []Source{passwords[0],
		should(13, sAuth,
			"While the communication between a Platform and Service Broker MAY be unsecure, it is RECOMMENDED that all "+
				"communications between a Platform and a Service Broker are secured via TLS and authenticated.")}
	unprocess = []Source{
		should(14, sContent,
			"If a Service Broker rejects a request due to a mismatched `Content-Type` or the body is unprocessable "+
				"it SHOULD respond with `400 Bad Request`.")}
	ignoring = []Source{
		{Should, 9, 13, cf, "Change Policy",
			"These fields must be optional and should be ignored by clients and servers that do not understand them."},
		must(14, sExtension,
			"Receivers of messages defined by this specification that contain unknown extension fields MUST ignore "+
				"those fields and MUST NOT halt processing of those messages due to the presence of those fields.")}
	asterisk = []Source{
		before(Must, sCatalog, "Fields with an asterisk are required."),
		must(12, sOffering, "Fields with an asterisk are REQUIRED.")}
	waits = []Source{
		before(Should, sAsync,
			"If the `accepts_incomplete=true` parameter is not included, and the broker cannot fulfill the request "+
				"synchronously (guaranteeing that the operation is complete on response), then the broker should reject "+
				"the request with the status code `422 UNPROCESSABLE ENTITY` and the following body")}
	provisions = slices.Concat(waits, all(
		must(12, "Provisioning, 422 Unprocessable Entity",
			"MUST be returned if the Service Broker only supports asynchronous provisioning for the requested "+
				"Service Plan and the request did not include `?accepts_incomplete=true`. The response body MUST contain "+
				"error code `\"AsyncRequired\"`")))
	updates = slices.Concat(all(waits[0].ending(13)), all(
		must(14, sAsync,
			"the Service Broker MUST reject the request with the status code `422 Unprocessable Entity` and a "+
				"response body containing error code `\"AsyncRequired\"`").ending(14),
		must(15, "Updating a Service Instance, 422 Unprocessable entity",
			"Additionally, this MUST be returned if the Service Broker only supports asynchronous update for the "+
				"requested Service Plan and the request did not include `?accepts_incomplete=true`; in this case the "+
				"response body MUST contain a error code `\"AsyncRequired\"`")))
	deletes = slices.Concat(waits, all(
		must(12, "Deprovisioning, 422 Unprocessable Entity",
			"MUST be returned if the Service Broker only supports asynchronous deprovisioning for the requested "+
				"Service Plan and the request did not include `?accepts_incomplete=true`. The response body MUST contain "+
				"error code `\"AsyncRequired\"`")))
	created = []Source{
		before(Must, "Provisioning, 201 Created", "Service instance has been created."),
		must(12, "Provisioning, 201 Created",
			"MUST be returned if the Service Instance was provisioned as a result of this request.")}
	accepted = []Source{
		before(Must, sAsync,
			"If the broker executes the request asynchronously, the response must use the status code `202 ACCEPTED`"),
		must(12, "Provisioning, 202 Accepted", "MUST be returned if the Service Instance provisioning is in progress.")}
	identical = []Source{
		before(May, "Provisioning, 200 OK",
			"May be returned if the service instance already exists and the requested parameters are identical to "+
				"the existing service instance."),
		must(12, "Provisioning, 200 OK",
			"MUST be returned if the service instance already exists, is fully provisioned, and the requested "+
				"parameters are identical to the existing service instance.").ending(13),
		should(14, "Provisioning, 200 OK",
			"SHOULD be returned if the Service Instance already exists, is fully provisioned, and the requested "+
				"parameters are identical to the existing Service Instance.")}
	conflicts = []Source{
		before(Should, "Provisioning, 409 Conflict", "Should be returned if the requested service instance already exists."),
		must(12, "Provisioning, 409 Conflict",
			"MUST be returned if a Service Instance with the same id already exists or is being provisioned but with "+
				"different attributes.")}
	again = []Source{
		must(12, "Provisioning, 202 Accepted",
			"Note that a re-sent `PUT` request MUST return a `202 Accepted`, not a `200 OK`, if the Service Instance "+
				"is not yet fully provisioned.")}
	sameToken = "The `operation` string MUST match that returned for the original request."
	valid     = []Source{
		should(12, sProvision,
			"Service Brokers SHOULD ensure that the client has provided valid configuration parameters and values "+
				"for the operation.")}
	otherVersion = []Source{
		must(15, "Provisioning, 422 Unprocessable Entity",
			"This MUST also be returned if the `maintenance_info.version` provided in the request does not match the "+
				"`maintenance_info.version` described for the Service Plan in the Service Broker's catalog. In this "+
				"case, the response body MUST contain error code `\"MaintenanceInfoConflict\"`")}
	fetched = []Source{
		must(14, sFetch,
			"Service Brokers MUST support this endpoint for all Service Plans of the Service Offering and this "+
				"endpoint MUST be available immediately after the Polling Last Operation for Service Instances endpoint "+
				"returns `\"state\": \"succeeded\"` for a Provisioning operation.")}
	notFetched = []Source{
		must(14, "Fetching a Service Instance, 404 Not Found",
			"MUST be returned if the Service Instance does not exist or if a provisioning operation is still in "+
				"progress.")}
	applied = []Source{
		before(Must, "Updating a Service Instance, 200 OK", "New plan is effective."),
		must(12, "Updating a Service Instance, 200 OK", "MUST be returned if the request's changes have been applied")}
	inUpdate = []Source{
		before(Must, sAsync,
			"If the broker executes the request asynchronously, the response must use the status code `202 ACCEPTED`"),
		must(12, "Updating a Service Instance, 202 Accepted", "MUST be returned if the Service Instance update is in progress.")}
	unsupported = []Source{
		before(May, "Updating a Service Instance, 422 Unprocessable entity",
			"May be returned if the particular plan change requested is not supported"),
		must(12, "Updating a Service Instance, 422 Unprocessable entity",
			"MUST be returned if the requested change is not supported or if the request cannot currently be "+
				"fulfilled due to the state of the Service Instance")}
	states = []Source{
		before(Must, "Polling Last Operation", "Valid values for `state` are `in progress`, `succeeded`, and `failed`."),
		must(12, sPoll, "Valid values are `in progress`, `succeeded`, and `failed`.")}
	polled = []Source{
		before(Must, "Polling Last Operation, 200 OK", "The expected response body is below."),
		must(12, "Polling Last Operation for Service Instances, 200 OK",
			"MUST be returned upon successful processing of this request.")}
	remembered = []Source{
		{Level: Recommended, From: 9, To: 15},
		should(16, sPoll,
			"Service Brokers SHOULD NOT forget the state of an operation immediately after returning a "+
				"`\"succeeded\"` or `\"failed\"` state in case the Platform needs to ask again.")}
	goneDeleted = []Source{
		before(Must, "Polling Last Operation, 410 GONE", "Appropriate only for asynchronous delete requests."),
		must(12, "Polling Last Operation for Service Instances, 410 Gone",
			"Appropriate only for asynchronous delete operations.")}
	bindCreated = []Source{
		before(Must, "Binding, 201 Created", "Binding has been created."),
		must(12, "Binding, 201 Created", "MUST be returned if the Service Binding was created as a result of this request.")}
	bindAgain = []Source{
		before(May, "Binding, 200 OK",
			"May be returned if the binding already exists and the requested parameters are identical to the "+
				"existing binding."),
		must(12, "Binding, 200 OK",
			"MUST be returned if the binding already exists and the requested parameters are identical to the "+
				"existing binding.").ending(13),
		should(14, "Binding, 200 OK",
			"SHOULD be returned if the Service Binding already exists and the requested parameters are identical to "+
				"the existing Service Binding.")}
	bindConflict = []Source{before(Should, "Binding, 409 Conflict",
		"Should be returned if the requested binding already exists."),
		must(12, "Binding, 409 Conflict",
			"MUST be returned if a Service Binding with the same id, for the same Service Instance, already exists "+
				"or is being created but with different parameters.")}
	apps = []Source{
		before(Should, "Binding, 422 Unprocessable Entity",
			"Should be returned if the broker requires that `app_guid` be included in the request body."),
		must(12, "Binding, 422 Unprocessable Entity",
			"MUST be returned if the Service Broker requires that `app_guid` be included in the request body.")}
	permission = []Source{
		before(Must, "Binding, Response",
			"must be declared in the catalog endpoint or Cloud Foundry will consider the response invalid."),
		must(12, "Binding, Response",
			"MUST be declared in the Catalog endpoint or the Platform can consider the response invalid.")}
	unboundAll = []Source{
		before(Must, "Unbinding, 200 OK", "Binding was deleted."),
		must(12, "Unbinding, 200 OK", "MUST be returned if the Service Binding was deleted as a result of this request.")}
	noBinding = []Source{
		before(Should, "Unbinding, 410 Gone", "Should be returned if the binding does not exist."),
		must(12, "Unbinding, 410 Gone", "MUST be returned if the Service Binding does not exist.")}
	deletedAll = []Source{
		before(Must, "Deprovisioning, 200 OK", "Service instance was deleted."),
		must(12, "Deprovisioning, 200 OK", "MUST be returned if the Service Instance was deleted as a result of this request.")}
	inDeletion = []Source{
		before(Must, "Deprovisioning, 202 Accepted", "Service instance deletion is in progress."),
		must(12, "Deprovisioning, 202 Accepted", "MUST be returned if the Service Instance deletion is in progress.")}
	noInstance = []Source{
		before(Should, "Deprovisioning, 410 Gone", "Should be returned if the service instance does not exist."),
		must(12, "Deprovisioning, 410 Gone", "MUST be returned if the Service Instance does not exist.")}
	bindGone = []Source{
		must(14, "Fetching a Service Binding, 404 Not Found",
			"MUST be returned if the Service Binding does not exist or if a binding operation is still in progress.")}
	rotation = []Source{
		must(17, sRotation,
			"The request creates a new Service Binding with a new binding ID. Both Service Bindings, the new and the "+
				"old one, MUST both be valid in parallel until they expired or are deleted.")}
	concurrent = []Source{
		must(14, sBlocking,
			"If a Service Broker receives a request that it is not able to process due a concurrency issue then the "+
				"Service Broker MUST reject the request with a HTTP `422 Unprocessable Entity` and a response body "+
				"containing error code `\"ConcurrencyError\"`")}
	halts = []Source{
		must(15, sDelete,
			"If a Service Broker accepts the request to delete a Service Instance during the process of it being "+
				"provisioned, then it MUST have the net effect of halting the current creation process and beginning the "+
				"deletion of any resources associated with the Service Instance.")}
	uniqueKeys = []Source{
		before(Should, "Types of Binding", "Credentials should be unique whenever possible"),
		should(12, "Types of Binding",
			"Credentials SHOULD be unique whenever possible, so access can be revoked for each Service Binding "+
				"without affecting consumers of other Service Bindings for the Service Instance.")}
	promptly = []Source{
		{Must, 9, 10, cf, sAsync, "brokers still must respond within 60 seconds"},
		{Recommended, 11, 13, osb, "Orphans",
			"Orphans can result if the broker does not return a response before a request from the marketplace times out " +
				"(typically 60 seconds)."},
		should(14, "Synchronous and Asynchronous Operations",
			"Service Broker authors SHOULD implement their Service Brokers to respond promptly to all requests")}
	facadeSays = []Source{
		{Recommended, 9, 0, pattern, "Status endpoint",
			"It is recommended to expose an endpoint that returns the status of an asynchronous request"}}
)
