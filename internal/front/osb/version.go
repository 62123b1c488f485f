package osb

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A version is the minor version of the API that a client speaks: 2.9 is 9.
type version int

// The oldest and the newest version that are served. Later minor versions only add, so they are
// served as the newest (HDR-03, HDR-05).
const (
	oldest version = 9
	newest version = 17
)

// Each feature is the version that introduced it: it is hidden from clients of older versions. No
// other place says which version introduced what.
const (
	placementRequired    version = 10 // a context cannot stand for organization_guid and space_guid (PROV-16)
	volumeMounts         version = 10 // in their present form (BIND-35)
	asynchronousBindings version = 14 // (BIND-20, UNB-07)
	updatedDashboard     version = 14 // dashboard_url in the answer to an update (UPD-27)
	maintenanceInfo      version = 15 // in requests (CLI-04)
	endpoints            version = 15 // endpoints of a binding (BIND-26)
	failureDetails       version = 16 // instance_usable and update_repeatable (ERR-10)
	expiry               version = 16 // expires_at of a binding (BIND-27)
	renewal              version = 17 // renew_before and predecessor_binding_id of a binding (ROT-08)
	rotatable            version = 17 // binding_rotatable in the catalog (CAT-25)
	maintenanceShown     version = 17 // maintenance_info in the answer to a GET of an instance
)

// apiVersion reads the version header as two integers: compared as text or as a fraction, 2.10
// would come before 2.9 (HDR-02).
func apiVersion(h http.Header) (version, error) {
	value := h.Get(keptVersion)
	major, minor, _ := strings.Cut(value, ".")
	a, okMajor := digits(major)
	b, okMinor := digits(minor)
	var problem string
	switch {
	case value == "":
		problem = "The header " + headerVersion + " is required"
	case !okMajor || !okMinor:
		problem = fmt.Sprintf("The header %s is not a version of the form 2.%d", headerVersion, oldest)
	case a != 2 || version(b) < oldest:
		problem = fmt.Sprintf("Version %d.%d of the API is not supported", a, b)
	default:
		return min(version(b), newest), nil
	}
	return 0, lifecycle.Refuse(lifecycle.VersionUnsupported, "%s; this broker speaks 2.%d to 2.%d.", problem, oldest, newest)
}
