package conformance

// resourceSources are the sources of the rules about requests for instances and bindings.
var resourceSources = map[string][]Source{
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
	"PROV-13": unlike, "PROV-13/2.9": unsaid(9), "PROV-13/2.9-plan": unsaid(9), "PROV-14": mayInvalid,
	"PROV-15": from(11, unlike...), "PROV-15/organization-empty": from(12, mayInvalid...),
	"PROV-15/space-empty": from(12, mayInvalid...), "PROV-16": unsaid(9), "PROV-17": from(12, created...), "PROV-18": valid,
	"PROV-19": valid, "PROV-20": otherVersion, "PROV-20/none": unsaid(15), "PROV-21": from(15, created...), "PROV-22": unsaid(9),
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

	"GETI-01": fetched,
	"GETI-01/ids": {open(14, sFetch,
		"The ID of the Service Plan from the catalog that is associated with the Service Instance.")},
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
	"LOP-10":     goneDeleted, "LOP-11": goneDeleted, "LOP-12": polled, "LOP-12/mismatch": unsaid(9),
	"LOP-12/update-mismatch": unsaid(9), "LOP-14": unsaid(9),
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
		must(16, "Binding Metadata Object",
			"If present, the string MUST follow ISO 8601 and this pattern: `yyyy-mm-ddThh:mm:ss.sZ`.")},
	"BIND-30": permission,
	"BIND-31": {
		{Level: Recommended, From: 9, To: 11},
		must(12, "Log Drain",
			"A create binding response from a Service Broker that provides one of these services MUST include a "+
				"`syslog_drain_url`.")},
	"BIND-31/scheme": unsaid(9), "BIND-32": unsaid(9), "BIND-33": unsaid(9),
	"BIND-34": {
		must(11, "Volume Services",
			"A create Service Binding response from one of these services MUST include `volume_mounts`.")},
	"BIND-35": unsaid(9), "BIND-38": unchanged,

	"ROT-01": rotation, "ROT-01/credentials": from(17, uniqueKeys...), "ROT-02": unsaid(17), "ROT-03": rotation,
	"ROT-04": unsaid(17), "ROT-05": unsaid(17), "ROT-06": unsaid(17),
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

	"UNB-01": unboundAll, "UNB-01/2.9": at(9, unboundAll...), "UNB-02": noBinding, "UNB-02/2.9": at(9, noBinding...),
	"UNB-03": noBinding, "UNB-04": from(14, malformed...), "UNB-04/empty": from(14, mayInvalid...), "UNB-05": unsaid(9),
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
}
