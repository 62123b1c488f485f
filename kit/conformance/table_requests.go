package conformance

// column returns a source that is a row of a table: the type of a field in the catalog.
func column(minor int, section, field, jsonType string) []Source {
	return []Source{must(minor, section, field+" | "+jsonType)}
}

// catalogField returns a source for a field that is older than the tables, which came with 2.11.
func catalogField(section, field, jsonType string) []Source {
	return column(9, section, field, jsonType)
}

// requestSources are the sources of the rules about the catalog and about all requests.
var requestSources = map[string][]Source{
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

	"ERR-01": {{Must, 9, 13, cf, "Body", "All response bodies must be a valid JSON Object (`{}`)."},
		{Level: Recommended, From: 14}},
	"ERR-02":      {must(12, sErrors, "If present, MUST be a non-empty string.")},
	"ERR-02/word": {should(14, sErrors, "A single word in camel case that uniquely identifies the error condition.")},
	"ERR-02/description": {
		{Recommended, 9, 13, cf, sErrors29,
			"If an empty JSON object is returned in the body `{}`, a generic message containing the HTTP response " +
				"code returned by the broker will be displayed to the requestor."},
		open(14, sErrors,
			"A user-facing error message explaining why the request failed. If present, MUST be a non-empty string.")},
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
	"INP-03/provision-service_id": unlike, "INP-03/provision-plan_id": unlike,
	"INP-03/provision-organization_guid": from(11, unlike...), "INP-03/provision-space_guid": from(11, unlike...),
	"INP-03/update-service_id": unlike, "INP-03/bind-service_id": unlike, "INP-03/bind-plan_id": unlike,
	"INP-04": mayInvalid, "INP-05": mayInvalid, "INP-06": ignoring, "INP-07": unsaid(9), "INP-08": unsaid(9),
	"INP-09": provisions, "INP-09/banana": unsaid(9), "INP-10": unsaid(9), "INP-12": unsaid(9), "INP-13": unsaid(9),
	"INP-14": unsaid(9), "INP-15": unsaid(9),
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
		should(9, sOffering,
			"The only permissions currently supported are `syslog_drain`, `route_forwarding` and `volume_mount`")},
	"CAT-11": catalogField(sOffering, "metadata", "object"), "CAT-12": unsaid(9),
	"CAT-13": catalogField(sOffering, "plan_updateable", "boolean"), "CAT-14": column(15, sPlan, "plan_updateable", "boolean"),
	"CAT-13/endpoint": {must(9, sOffering,
		"Whether the Service Offering supports upgrade/downgrade for Service Plans by default.")},
	"CAT-15": column(11, sPlan, "bindable", "boolean"),
	"CAT-16": catalogField(sPlan, "free", "boolean"), "CAT-17": column(14, sOffering, "instances_retrievable", "boolean"),
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

	"IDEM-02": conflicts, "IDEM-02/same": identical, "IDEM-03": identical, "IDEM-03/parallel": mayChoose, "IDEM-05": unsaid(9),
	"IDEM-06": unsaid(9), "IDEM-07": from(14, mayChoose...), "IDEM-08": unsaid(9), "IDEM-09": unsaid(9),
	"CONC-01": from(14, mayChoose...), "CONC-02": unchanged, "CONC-03": polled, "CONC-05": unsaid(9), "CONC-06": mayChoose,
	"CONC-07": from(14, mayChoose...), "CONC-08": from(14, mayChoose...), "CONC-09": halts,
	"ORB-01": noInstance, "ORB-01/refused": noInstance, "ORB-02": noBinding, "ORB-03": mayChoose, "ORB-06": unsaid(9),
	"ORB-07": unsaid(9),

	"FAC-01": facadeSays, "FAC-02": facadeSays, "FAC-03": facadeSays, "FAC-04": facadeSays, "FAC-06": facadeSays,
	"FAC-07": facadeSays, "FAC-08": facadeSays, "FAC-09": facadeSays, "FAC-10": facadeSays,
	"FAC-11": facadeSays, "FAC-12": facadeSays, "FAC-13": facadeSays, "FAC-14": facadeSays, "FAC-15": facadeSays,
	"FAC-17": facadeSays, "FAC-18": facadeSays, "FAC-19": facadeSays, "FAC-20": facadeSays,
}
