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
		open(9, sVersion, "This header allows Service Brokers to reject requests from Platforms for versions they do not support.")}
	mayChoose = []Source{
		{Level: Recommended, From: 9, To: 14},
		open(15, sBlocking,
			"Service Brokers MAY choose the degree to which they support concurrent requests, ranging from not "+
				"supporting them at all to only supporting them in selective situations.")}
	noAsync  = []Source{{Recommended, 9, 0, osb + " 2.14", "Changes Since v2.13", "Added support for asynchronous Service Bindings"}}
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
	// guarded is why a broker that takes any password is a hazard.
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
		must(12, "Provisioning, 201 Created", "MUST be returned if the Service Instance was provisioned as a result of this request.")}
	accepted = []Source{
		before(Must, sAsync, "If the broker executes the request asynchronously, the response must use the status code `202 ACCEPTED`"),
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
		before(Must, sAsync, "If the broker executes the request asynchronously, the response must use the status code `202 ACCEPTED`"),
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
		must(12, "Polling Last Operation for Service Instances, 200 OK", "MUST be returned upon successful processing of this request.")}
	remembered = []Source{
		{Level: Recommended, From: 9, To: 15},
		should(16, sPoll,
			"Service Brokers SHOULD NOT forget the state of an operation immediately after returning a "+
				"`\"succeeded\"` or `\"failed\"` state in case the Platform needs to ask again.")}
	goneDeleted = []Source{
		before(Must, "Polling Last Operation, 410 GONE", "Appropriate only for asynchronous delete requests."),
		must(12, "Polling Last Operation for Service Instances, 410 Gone", "Appropriate only for asynchronous delete operations.")}
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
	bindConflict = []Source{before(Should, "Binding, 409 Conflict", "Should be returned if the requested binding already exists."),
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
		must(12, "Binding, Response", "MUST be declared in the Catalog endpoint or the Platform can consider the response invalid.")}
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

// column is a statement of a table about a field of the catalog.
func column(minor int, section, field, jsonType string) []Source {
	return []Source{must(minor, section, field+" | "+jsonType)}
}

// catalogField is a field that is older than the tables of 2.11.
func catalogField(section, field, jsonType string) []Source {
	return column(9, section, field, jsonType)
}

// sources are the sources by the id of a case or of its rule.
var sources = map[string][]Source{
	"HDR-01": mayReject, "HDR-02": mayReject, "HDR-03": mayReject, "HDR-04": mayReject, "HDR-05": mayReject, "HDR-07": mayReject,
	"HDR-09": mayReject,
	"HDR-06": {
		{Level: Recommended, From: 9, To: 15},
		open(16, sVersion,
			"If the request from the Platform to the Service Broker doesn't contain this header, then the Service "+
				"Broker MAY reject the request with `400 Bad Request` and provide a message that the header is required.")},
	"HDR-08": {{Should, 9, 0, http11, "5.1", "Field names are case-insensitive"}},
	"HDR-10": noAsync, "BIND-20": noAsync, "UNB-07": noAsync,

	"AUTH-01": passwords, "AUTH-02": passwords, "AUTH-03": passwords, "AUTH-02/alike": unsaid(9), "AUTH-04": unsaid(9),
	"AUTH-05": {{Should, 9, 0, http11, "11.1", "It uses a case-insensitive token to identify the authentication scheme"}},
	"AUTH-06": {
		{Should, 9, 0, http11, "11.6.1",
			"A server generating a 401 (Unauthorized) response MUST send a WWW-Authenticate header field containing " +
				"at least one challenge."}},
	"AUTH-07": unchanged,

	"OID-01": identified, "OID-03": unsaid(13), "OID-05": unsaid(13),
	"OID-04": {
		must(13, sIdentity,
			"Any OSBAPI request that is not associated with an action from a Platform's user, such as the Platform "+
				"refetching the catalog, MAY exclude the header from that HTTP request.")},
	"RID-01": {should(15, sRequest, "The Service Broker SHOULD include this header in the response to the request.")},
	"RID-03": unsaid(15), "RID-04": unsaid(15), "MISC-01": unsaid(9), "MISC-02": unsaid(9), "MISC-03": unsaid(9),
	"MISC-05/charset": unsaid(9),
	"MISC-04": {
		should(14, sContent,
			"All requests and responses defined in this specification with accompanying bodies SHOULD contain a "+
				"`Content-Type` header set to `application/json`.")},
	"MISC-05": unprocess, "MISC-06": unprocess, "MISC-07": unprocess,

	"ERR-01":      {{Must, 9, 13, cf, "Body", "All response bodies must be a valid JSON Object (`{}`)."}, {Level: Recommended, From: 14}},
	"ERR-02":      {must(12, sErrors, "If present, MUST be a non-empty string.")},
	"ERR-02/word": {should(14, sErrors, "A single word in camel case that uniquely identifies the error condition.")},
	"ERR-02/description": {
		{Recommended, 9, 13, cf, sErrors29,
			"If an empty JSON object is returned in the body `{}`, a generic message containing the HTTP response " +
				"code returned by the broker will be displayed to the requestor."},
		open(14, sErrors, "A user-facing error message explaining why the request failed. If present, MUST be a non-empty string.")},
	"ERR-03": provisions,
	"ERR-03/sentence": {
		waits[0].ending(13),
		open(14, sAsync,
			"The error response MAY include a helpful error message in the `description` field such as `\"This "+
				"Service Plan requires client support for asynchronous service operations.\"`.")},
	"ERR-04": concurrent,
	"ERR-04/sentence": {
		open(14, sBlocking,
			"The error response MAY include a helpful error message in the `description` field such as `\"Another "+
				"operation for this Service Instance is in progress.\"`.")},
	"ERR-04/fetch-while-updating": {
		must(14, "Fetching a Service Instance, 422 Unprocessable Entity",
			"MUST be returned if the Service Instance is being updated and therefore cannot be fetched at this time. "+
				"The response body MUST contain error code `\"ConcurrencyError\"`")},
	"ERR-04/deprovision-while-updating": {concurrent[0].ending(14),
		must(15, "Deprovisioning, 422 Unprocessable Entity",
			"Additionally, this MUST be returned if the Service Instance is being processed by some other operation "+
				"and therefore cannot be deleted at this time. The response body MUST contain error code "+
				"`\"ConcurrencyError\"`")},
	"ERR-05": at(9, apps...),
	"ERR-06": otherVersion,
	"ERR-07": {
		should(14, sErrors, "A single word in camel case that uniquely identifies the error condition.")},
	"ERR-08": unchanged,
	"ERR-10": {must(16, sErrors, "This field MUST NOT be present for errors of other operations.")},
	"ERR-11": thatCode, "ERR-13": unsaid(9),

	"INP-01": unlike, "INP-02": unlike, "INP-17": unsaid(9), "INP-03": mayInvalid,
	"INP-03/provision-service_id": unlike, "INP-03/provision-plan_id": unlike, "INP-03/provision-organization_guid": from(11, unlike...),
	"INP-03/provision-space_guid": from(11, unlike...),
	"INP-03/update-service_id":    unlike, "INP-03/bind-service_id": unlike, "INP-03/bind-plan_id": unlike,
	"INP-04": mayInvalid, "INP-05": mayInvalid, "INP-06": ignoring, "INP-07": unsaid(9), "INP-08": unsaid(9),
	"INP-09": provisions, "INP-09/banana": unsaid(9), "INP-10": unsaid(9), "INP-12": unsaid(9), "INP-13": unsaid(9), "INP-14": unsaid(9),
	"INP-15": unsaid(9),
	"INP-11": {
		open(13, sURL,
			"While this specification places no restriction on the set of characters used within these strings, it "+
				"is RECOMMENDED that these properties only contain characters from the \"Unreserved Characters\"")},
	"INP-11/unreserved": {
		should(13, sURL,
			"While this specification places no restriction on the set of characters used within these strings, it "+
				"is RECOMMENDED that these properties only contain characters from the \"Unreserved Characters\"")},
	"INP-16": unsaid(9), "INP-18": unsaid(9), "INP-19": unsaid(9), "INP-20": unsaid(9),

	"CAT-01": asterisk, "CAT-02": asterisk, "CAT-03": asterisk,
	"CAT-02/plans": {
		before(Must, sCatalog, "A list of plans for this service, schema is defined below."),
		must(12, sOffering, "MUST contain at least one Service Plan.")},
	"CAT-04/service-ids": {
		before(Must, sCatalog, "This must be unique within Cloud Foundry"),
		must(12, sOffering,
			"This MUST be globally unique such that Platforms (and their users) MUST be able to assume that seeing "+
				"the same value (no matter what Service Broker uses it) will always refer to this Service Offering")},
	"CAT-04/plan-ids": {
		before(Must, sCatalog, "This must be unique within Cloud Foundry"),
		must(12, sPlan,
			"This MUST be globally unique such that Platforms (and their users) MUST be able to assume that seeing "+
				"the same value (no matter what Service Broker uses it) will always refer to this Service Plan and for "+
				"the same Service Offering")},
	"CAT-04/service-names": {
		{Level: Recommended, From: 9, To: 14},
		must(15, sOffering, "MUST be unique across all Service Offering objects returned in this response.")},
	"CAT-04/plan-names": {{Level: Recommended, From: 9, To: 14}, must(15, sPlan, "MUST be unique within the Service Offering.")},
	"CAT-04/apart":      unsaid(9), "CAT-04/clients": unsaid(9),
	"CAT-05": {
		{Should, 9, 10, cf, sCatalog, "The CLI-friendly name of the service that will appear in the catalog."},
		should(11, sOffering, "A CLI-friendly name of the service. All lowercase, no spaces.").ending(12),
		must(13, sOffering, "MUST only contain lowercase characters, numbers and hyphens (no spaces).").ending(13),
		must(14, sOffering, "MUST only contain alphanumeric characters, periods, and hyphens (no spaces).").ending(14),
		should(15, sOffering, "Using a CLI-friendly name is RECOMMENDED.")},
	"CAT-07": {
		{Level: Recommended, From: 9, To: 12},
		must(13, sCatalog,
			"Likewise, a Service Broker MUST NOT change the `id` of a resource across queries, otherwise a Platform "+
				"will treat it as a different resource.")},
	"CAT-08": catalogField(sOffering, "tags", "array of strings"), "CAT-08/length": unsaid(9),
	"CAT-09": {
		should(9, sOffering, "The only permissions currently supported are `syslog_drain`, `route_forwarding` and `volume_mount`")},
	"CAT-11": catalogField(sOffering, "metadata", "object"), "CAT-12": unsaid(9),
	"CAT-13": catalogField(sOffering, "plan_updateable", "boolean"), "CAT-14": column(15, sPlan, "plan_updateable", "boolean"),
	"CAT-13/endpoint": {must(9, sOffering, "Whether the Service Offering supports upgrade/downgrade for Service Plans by default.")},
	"CAT-15":          column(11, sPlan, "bindable", "boolean"),
	"CAT-16":          catalogField(sPlan, "free", "boolean"), "CAT-17": column(14, sOffering, "instances_retrievable", "boolean"),
	"CAT-18": column(14, sOffering, "bindings_retrievable", "boolean"),
	"CAT-18/async": {
		must(14, sPollBind,
			"in the case of a Binding request, information regarding the Service Binding can then immediately be "+
				"fetched using the Fetching a Service Binding endpoint.")},
	"CAT-19": column(15, sOffering, "allow_context_updates", "boolean"),
	"CAT-19/endpoint": {
		must(15, sOffering,
			"Specifies whether a Service Instance supports Update requests when contextual data for the Service "+
				"Instance in the Platform changes.")},
	"CAT-20": column(13, "Schemas Object", "service_instance", "ServiceInstanceSchema"),
	"CAT-21": {
		must(13, sSchema,
			"The `$schema` key MUST be present in the schema declaring the version of JSON schema being used. * "+
				"Schemas MUST NOT contain any external references. * Schemas MUST NOT be larger than 64kB.")},
	"CAT-23": column(15, sPlan, "maximum_polling_duration", "integer"),
	"CAT-24": {must(15, "Maintenance Info Object", "This MUST be a string conforming to a semantic version 2.0.")},
	"CAT-25": column(17, sPlan, "binding_rotatable", "boolean"), "CAT-25/old": unsaid(9),
	"CAT-26": {
		should(14, sCatalog,
			"It is RECOMMENDED that strings do not exceed 255 characters to increase the likelihood of having "+
				"compatibility with any Platform.")},
	"CAT-27": unsaid(9),
	"CAT-29": {
		before(Must, "Catalog Management, 200 OK", "The expected response body is below."),
		must(12, "Catalog Management, 200 OK", "MUST be returned upon successful processing of this request.")},
	"CAT-30": {
		{May, 16, 0, osb, sCatalog,
			"Service Brokers and Platforms MAY support the `ETag` and `If-Modified-Since` HTTP headers to enable " +
				"caching of the catalog."}},
	"CAT-31": unsaid(9),

	"PROV-01": created, "PROV-01/2.9": at(9, created...), "PROV-02": accepted,
	"PROV-02/operation": {
		open(9, sProvision, "For asynchronous responses, Service Brokers MAY return an identifier representing the operation.")},
	"PROV-03": provisions, "PROV-03/2.9": at(9, provisions...),
	"PROV-04": {
		{May, 9, 0, osb, sAsync,
			"Support for synchronous or asynchronous responses MAY vary by Service Offering, even by Service Plan."}},
	"PROV-05": {
		{May, 9, 0, osb, sSync,
			"Service Brokers that support synchronous responses for provision, update, and delete can ignore the " +
				"`accepts_incomplete=true` query parameter if it is provided by the client."}},
	"PROV-06": {
		before(Must, sAsync, "The parameter `accepts_incomplete=true` must be passed in a request by the CF API client"),
		must(12, sAsync,
			"For a Service Broker to return an asynchronous response, the query parameter `accepts_incomplete=true` "+
				"MUST be included the request.")},
	"PROV-07": identical, "PROV-07/2.9": at(9, identical...), "PROV-07/async-only": identical,
	"PROV-08": conflicts, "PROV-08/2.9": at(9, conflicts...), "PROV-09": unsaid(9),
	"PROV-10":           again,
	"PROV-10/operation": {must(14, "Provisioning, 202 Accepted", sameToken)}, "PROV-10/2.9": unsaid(9),
	"PROV-11": from(15, conflicts...), "PROV-12": provisions,
	"PROV-13": unlike, "PROV-13/2.9": unsaid(9), "PROV-13/2.9-plan": unsaid(9), "PROV-14": mayInvalid, "PROV-15": from(11, unlike...),
	"PROV-15/organization-empty": from(12, mayInvalid...), "PROV-15/space-empty": from(12, mayInvalid...),
	"PROV-16": unsaid(9), "PROV-17": from(12, created...), "PROV-18": valid, "PROV-19": valid,
	"PROV-20": otherVersion, "PROV-20/none": unsaid(15), "PROV-21": from(15, created...), "PROV-22": unsaid(9),
	"PROV-23": from(15, mayInvalid...),
	"PROV-24": {
		must(12, sProvision,
			"Note: a Service Broker that wishes to return `dashboard_url` for a Service Instance MUST return it with "+
				"the initial response to the provision request, even if the service is provisioned asynchronously.")},
	"PROV-25": {
		must(9, sProvision, "operation | string").ending(14),
		must(15, sProvision, "If present, MAY be null, and MUST NOT contain more than 10,000 characters.")},
	"PROV-25/apart": unsaid(9), "PROV-25/only": unsaid(9),
	"PROV-26": {must(16, "Service Instance Metadata", "labels | object")}, "PROV-27": unsaid(9),
	"PROV-28": {
		{Level: Recommended, From: 9, To: 15},
		{May, 16, 0, osb, sProvision, "Platforms SHOULD NOT reuse IDs, since Service Brokers MAY NOT support this."}},
	"PROV-29": mayChoose, "PROV-30": unsaid(9), "PROV-31": mayChoose, "PROV-32": promptly,
	"PROV-35": {
		{Level: Recommended, From: 9, To: 13},
		should(14, "Synchronous and Asynchronous Operations",
			"Service Brokers that can guarantee completion of the requested operation with the response SHOULD "+
				"return the synchronous response.")},

	"GETI-01":             fetched,
	"GETI-01/ids":         {open(14, sFetch, "The ID of the Service Plan from the catalog that is associated with the Service Instance.")},
	"GETI-01/maintenance": from(17, fetched...),
	"GETI-02":             notFetched, "GETI-03": notFetched, "GETI-04": from(14, mayChoose...), "GETI-05": unsaid(14),
	"GETI-06": notFetched,
	"GETI-07": unsaid(14), "GETI-08": fetched, "GETI-09": from(16, fetched...),
	"GETI-10": {
		{Level: Recommended, From: 14, To: 14},
		open(15, sFetch, "Service Brokers MAY choose to not return some or all parameters when a Service Instance is fetched")},
	"GETI-11": {must(14, sFetch, "The ID of the Service Plan from the catalog that is associated with the Service Instance.")},
	"GETI-12": unsaid(9),

	"UPD-01": applied, "UPD-02": inUpdate, "UPD-03": updates, "UPD-03/2.9": at(9, updates...), "UPD-03/plan": unsaid(9),
	"UPD-04": mayInvalid, "UPD-04/missing": unlike, "UPD-05": unsaid(9),
	"UPD-06": unsupported, "UPD-09": unsupported,
	"UPD-07": {
		must(12, sUpdate,
			"If this field is not present in the request message, then the Service Broker MUST NOT change the "+
				"Service Plan of the Service Instance as a result of this request.")},
	"UPD-08": {
		must(12, sUpdate,
			"if this field is not present in the request then the Service Broker MUST NOT change the parameters of "+
				"the instance as a result of this request.")},
	"UPD-10": unsaid(14), "UPD-12": valid,
	"UPD-13": {open(15, "Updating a Service Instance, 200 OK", "MAY be returned if the request's changes have had no effect")},
	"UPD-14": from(12, applied...), "UPD-15": unsaid(15),
	"UPD-15/allowed": {
		must(15, sUpdate,
			"a Service Broker MUST declare support by including `\"allow_context_updates\": true` in its catalog "+
				"endpoint.")},
	"UPD-16": from(15, applied...), "UPD-18": applied, "UPD-18/2.9": at(9, applied...),
	"UPD-18/maintenance": from(15, applied...), "UPD-18/stale": unsaid(9),
	"UPD-17": {
		must(15, "Updating a Service Instance, 422 Unprocessable entity",
			"Additionally, this MUST be returned if the `maintenance_info.version` provided in the request does not "+
				"match the `maintenance_info.version` described for the Service Plan in the Service Broker's catalog.")},
	"UPD-17/none": unsaid(15), "UPD-19": unsaid(9), "UPD-20": from(14, mayChoose...), "UPD-22": from(14, mayChoose...),
	"UPD-23": {
		{Level: Recommended, From: 15, To: 15},
		open(16, sUpdate,
			"When an update fails, the Service Instance can still be usable or unusable or its state could be "+
				"unknown to the Platform.")},
	"UPD-21": {
		must(12, "Updating a Service Instance, 202 Accepted",
			"Note that a re-sent `PATCH` request MUST return a `202 Accepted`, not a `200 OK`, if the requested "+
				"update has not yet completed.")},
	"UPD-25": {{Level: Recommended, From: 9, To: 15}, open(16, sUpdate, "Other updates MAY be possible.")},
	"UPD-27": {must(14, sUpdate, "dashboard_url | string")},
	"UPD-28": applied,

	"LOP-01": states, "LOP-15": states, "LOP-02": remembered, "LOP-03": remembered, "LOP-03/description": unsaid(9),
	"LOP-03/old": unsaid(9), "LOP-04": polled,
	"LOP-05":       {should(15, sPoll, "It is RECOMMENDED that the header include a duration rather than a timestamp.")},
	"LOP-05/ended": unsaid(15),
	"LOP-06":       unsaid(9), "LOP-07": unsaid(9), "LOP-08": unsaid(9),
	"LOP-09": {
		must(16,
			"Polling Last Operation for Service Instances, 404 Not Found",
			"MUST be returned if the Service Instance being polled does not exist.")},
	"LOP-09/old": unsaid(9),
	"LOP-10":     goneDeleted, "LOP-11": goneDeleted, "LOP-12": polled, "LOP-12/mismatch": unsaid(9), "LOP-12/update-mismatch": unsaid(9),
	"LOP-14": unsaid(9),
	"LOP-16": {should(15, sDelete, "endpoint SHOULD indicate that the provision request has a `state` value of `failed`.")},
	"LOP-17": unsaid(9), "LOP-18": mayChoose, "LOP-19": remembered,
	"LOP-21": {
		must(16, sPoll,
			"A user-facing message that can be used to tell the user details about the status of the operation. If "+
				"present, MUST be a non-empty string.")},

	"BIND-01": bindCreated, "BIND-01/2.9": at(9, bindCreated...), "BIND-02": bindAgain, "BIND-02/credentials": onceOnly,
	"BIND-02/twice": onceOnly,
	"BIND-03":       unsaid(9), "BIND-03/parameters": bindConflict, "BIND-03/2.9": at(9, bindConflict...),
	"BIND-04": unlike, "BIND-04/service_id-empty": mayInvalid,
	"BIND-04/plan_id-empty": mayInvalid, "BIND-05": mayInvalid,
	"BIND-06": unsaid(9), "BIND-07": unsaid(9), "BIND-08": bindCreated, "BIND-09": unsaid(9), "BIND-10": apps,
	"BIND-10/resource": bindCreated,
	"BIND-11": {
		before(Must, "Types of Binding", "When a service key is created, the app id is not included."),
		must(12, "Bind Resource Object",
			"In some cases the Platform might not be able to provide this information at the time of the binding "+
				"request, therefore the `bind_resource` and its fields are OPTIONAL.")},
	"BIND-12": ignoring,
	"BIND-13": {
		{Level: Recommended, From: 9, To: 13},
		open(14, sBind,
			"Otherwise, Platforms MUST NOT make a binding request to the Service Broker for any Service Instance "+
				"using the given Service Offering or Service Plan.")},
	"BIND-14": from(13, bindCreated...), "BIND-15": valid, "BIND-16": uniqueKeys, "BIND-16/left": unsaid(14),
	"BIND-17": mayChoose, "BIND-17/failed": unsaid(9),
	"BIND-19": unsaid(9),
	"BIND-21": {
		must(14, "Binding, 202 Accepted",
			"Information regarding the Service Binding (i.e. credentials) MUST NOT be returned in this response.")},
	"BIND-22": {
		must(14, "Binding, 422 Unprocessable Entity",
			"This MUST also be returned if the Service Broker only supports asynchronous bindings for the Service "+
				"Instance and the request did not include `?accepts_incomplete=true`. In this case, the response body "+
				"MUST contain error code `\"AsyncRequired\"`")},
	"BIND-23": {
		must(14, "Binding, 202 Accepted",
			"MUST be returned if the binding is in progress. The `operation` string MUST match that returned for the "+
				"original request.")},
	"BIND-23/other": unsaid(15), "BIND-23/parameters": from(15, bindConflict...),
	"BIND-24": mayChoose,
	"BIND-25": {
		must(14, sFetchBind,
			"MUST be returned if the Service Broker supports generation of credentials and the Service Binding was "+
				"provisioned asynchronously.")},
	"BIND-26": {
		must(15, "Endpoint Object",
			"A non-empty array. Each element is either a single port (for example \"443\") or a port range (for "+
				"example \"9000-9010\").")},
	"BIND-27": {
		must(16, "Binding Metadata Object", "If present, the string MUST follow ISO 8601 and this pattern: `yyyy-mm-ddThh:mm:ss.sZ`.")},
	"BIND-30": permission,
	"BIND-31": {
		{Level: Recommended, From: 9, To: 11},
		must(12, "Log Drain",
			"A create binding response from a Service Broker that provides one of these services MUST include a "+
				"`syslog_drain_url`.")},
	"BIND-31/scheme": unsaid(9), "BIND-32": unsaid(9), "BIND-33": unsaid(9),
	"BIND-34": {
		must(11, "Volume Services", "A create Service Binding response from one of these services MUST include `volume_mounts`.")},
	"BIND-35": unsaid(9), "BIND-38": unchanged,

	"ROT-01": rotation, "ROT-01/credentials": from(17, uniqueKeys...), "ROT-02": unsaid(17), "ROT-03": rotation, "ROT-04": unsaid(17),
	"ROT-05": unsaid(17), "ROT-06": unsaid(17),
	"ROT-07": from(17, bindAgain...), "ROT-07/other": unsaid(17), "ROT-08": unsaid(9), "ROT-09": unsaid(17), "UNB-12": rotation,

	"GETB-01": {
		must(14, sFetchBind,
			"Service Brokers MUST support this endpoint for all Service Offerings and Service Plans that support "+
				"bindings (`\"bindable\": true`)")},
	"GETB-02": bindGone, "GETB-03": unsaid(14), "GETB-04": onceOnly,
	"GETB-04/hints": {must(16, sFetchBind, "The request provides these query string parameters as useful hints for brokers.")},
	"LOB-01":        {must(14, sPollBind, "Valid values are `in progress`, `succeeded`, and `failed`.")},
	"LOB-02": {
		must(16,
			"Polling Last Operation for Service Bindings, 404 Not Found",
			"MUST be returned if the Service Binding being polled does not exist.")},
	"LOB-03": {
		must(14, sFetchBind,
			"this endpoint MUST be available immediately after the Polling Last Operation for Service Bindings "+
				"endpoint returns `\"state\": \"succeeded\"` for a Binding operation.")},
	"LOB-04": {must(14, sPollBind, "Valid values are `in progress`, `succeeded`, and `failed`.")},
	"LOB-05": unsaid(14), "LOB-06": unsaid(14), "LOB-07": unsaid(14),

	"UNB-01": unboundAll, "UNB-01/2.9": at(9, unboundAll...), "UNB-02": noBinding, "UNB-02/2.9": at(9, noBinding...), "UNB-03": noBinding,
	"UNB-04": from(14, malformed...), "UNB-04/empty": from(14, mayInvalid...), "UNB-05": unsaid(9),
	"UNB-06": {must(14, "Unbinding, 202 Accepted", "MUST be returned if the unbinding is in progress.")},
	"UNB-06/refused": {
		must(14, "Unbinding, 422 Unprocessable Entity",
			"MUST also be returned if the Service Broker only supports asynchronous unbinding for the Service "+
				"Instance and the request did not include `?accepts_incomplete=true`. The response body MUST contain "+
				"error code `\"AsyncRequired\"`")},
	"UNB-06/again": {
		must(14, "Unbinding, 202 Accepted",
			"Note that a re-sent `DELETE` request MUST return a `202 Accepted`, not a `200 OK`, if the unbinding "+
				"request has not completed yet.")},
	"UNB-08": {
		must(15, sUnbind,
			"If a Service Broker accepts the request to delete a Service Binding during the process of it being "+
				"created, then it MUST have the net effect of halting the current creation process and beginning the "+
				"deletion of any resources associated with the Service Binding.")},
	"UNB-10": unsaid(9),

	"DEPR-01": deletedAll, "DEPR-01/2.9": at(9, deletedAll...), "DEPR-02": inDeletion, "DEPR-02/2.9": at(9, inDeletion...),
	"DEPR-03": noInstance, "DEPR-04": noInstance,
	"DEPR-05": unlike, "DEPR-05/empty": mayInvalid, "DEPR-06": deletes,
	"DEPR-07": {
		must(12, "Deprovisioning, 202 Accepted",
			"Note that a re-sent `DELETE` request MUST return a `202 Accepted`, not a `200 OK`, if the delete "+
				"request has not completed yet.")},
	"DEPR-07/refused": deletes, "DEPR-08": halts, "DEPR-09": from(14, mayChoose...),
	"DEPR-10": {
		{Level: Recommended, From: 9, To: 14},
		open(15, sDelete,
			"This specification does not specify what a Service Broker is to do if it receives a deprovision request "+
				"while there are still Service Bindings associated with it.")},
	"DEPR-11": unsaid(9),
	"DEPR-12": {
		before(Should, sDelete,
			"When a broker receives a deprovision request from Cloud Controller, it should delete any resources it "+
				"created during the provision."),
		must(12, sDelete,
			"When a Service Broker receives a deprovision request from a Platform, it MUST delete any resources it "+
				"created during the provision.")},
	"DEPR-14": unsaid(9), "DEPR-16": unsaid(14), "DEPR-17": deletedAll,

	"IDEM-02": conflicts, "IDEM-02/same": identical, "IDEM-03": identical, "IDEM-03/parallel": mayChoose, "IDEM-05": unsaid(9),
	"IDEM-06": unsaid(9), "IDEM-07": from(14, mayChoose...), "IDEM-08": unsaid(9), "IDEM-09": unsaid(9),
	"CONC-01": from(14, mayChoose...), "CONC-02": unchanged, "CONC-03": polled, "CONC-05": unsaid(9), "CONC-06": mayChoose,
	"CONC-07": from(14, mayChoose...), "CONC-08": from(14, mayChoose...), "CONC-09": halts,
	"ORB-01": noInstance, "ORB-01/refused": noInstance, "ORB-02": noBinding, "ORB-03": mayChoose, "ORB-06": unsaid(9),
	"ORB-07": unsaid(9),

	"FAC-01": facadeSays, "FAC-02": facadeSays, "FAC-03": facadeSays, "FAC-04": facadeSays, "FAC-06": facadeSays, "FAC-07": facadeSays,
	"FAC-08": facadeSays, "FAC-09": facadeSays, "FAC-10": facadeSays,
	"FAC-11": facadeSays, "FAC-12": facadeSays, "FAC-13": facadeSays, "FAC-14": facadeSays, "FAC-15": facadeSays, "FAC-17": facadeSays,
	"FAC-18": facadeSays, "FAC-19": facadeSays, "FAC-20": facadeSays,
}
