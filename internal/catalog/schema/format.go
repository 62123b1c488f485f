package schema

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// formats holds the formats that drafts up to 7 know, and some that are used with them. Other formats are not checked.
var formats = map[string]func(string) bool{
	"date":                  isDate,
	"time":                  isTime,
	"date-time":             isDateTime,
	"duration":              matching(`^P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?)$`),
	"email":                 isEmail,
	"hostname":              isHostname,
	"ipv4":                  func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"ipv6":                  func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() && a.Zone() == "" },
	"uri":                   isAbsolute,
	"iri":                   isAbsolute,
	"uri-reference":         isReference,
	"iri-reference":         isReference,
	"uri-template":          matching(`^([^{}]|\{[^{}]*\})*$`),
	"uuid":                  matching(`^[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$`),
	"json-pointer":          matching(`^(/([^~/]|~[01])*)*$`),
	"relative-json-pointer": matching(`^(0|[1-9]\d*)(#|(/([^~/]|~[01])*)*)$`),
	"regex":                 func(s string) bool { _, err := regexp.Compile(s); return err == nil },
	"semver": matching(`^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-` + before + `(\.` + before + `)*)?` +
		`(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`),
}

// before matches one identifier of a pre-release version (Semantic Versioning 2.0).
const before = `(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)`

// hostLabel matches one label of a host name.
const hostLabel = `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?`

// matching compiles its pattern when it is first used, since a cold start waits for everything
// that packages do when they load.
func matching(pattern string) func(string) bool {
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(s string) bool { return re().MatchString(s) }
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

var (
	clockTime = matching(`^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([zZ]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)
	emailName = matching("^([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*|\"[^\"\\\\]*\")$")
	hostname  = matching(`^` + hostLabel + `(\.` + hostLabel + `)*\.?$`)
)

// isTime accepts a leap second (RFC 3339, section 5.6), which package time does not, and only
// at the end of a day in UTC.
func isTime(s string) bool {
	if !clockTime(s) {
		return false
	}
	if s[6:8] != "60" {
		return true
	}
	zone := strings.ToUpper(s[strings.IndexAny(s, "zZ+-"):])
	at, _ := time.Parse("15:04Z07:00", s[:5]+zone) // has the form of a time
	return at.UTC().Format("15:04") == "23:59"
}

func isDateTime(s string) bool {
	return len(s) > 11 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	return at > 0 && len(s) <= 254 && at <= 64 && emailName(s[:at]) && isHostname(s[at+1:])
}

func isHostname(s string) bool { return hostname(s) && len(strings.TrimSuffix(s, ".")) <= 253 }

func isAbsolute(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs()
}

func isReference(s string) bool {
	_, err := url.Parse(s)
	return err == nil && !strings.Contains(s, `\`)
}
