package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/internal/limits"
)

// Lengths in characters. CAT-26 advises 255 for descriptions as well and stops
// at 10 000: platforms refuse longer ones.
const (
	maxName        = limits.CatalogText
	maxDescription = 10_000
	maxTags        = 2048 // all together (CAT-08)
	maxMaintenance = 2000 // of the member's JSON (CAT-24)
)

var (
	// friendlyName is what every version of the specification accepts or
	// recommends (CAT-05).
	friendlyName = regexp.MustCompile(`^[a-z0-9.-]+$`)
	// printableID is narrower than the specification, which takes any
	// characters: ids are typed, logged and put into URLs.
	printableID = regexp.MustCompile(`^[\x21-\x7e]+$`)
	// semanticVersion is the grammar of Semantic Versioning 2.0 (CAT-24).
	semanticVersion = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)` +
		`(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?` +
		`(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
)

// A draft is an offering as it was read, perhaps with problems, and where its
// members stand.
type draft struct {
	offering Offering
	checks   []planChecks // by the plans' indexes
	file     string
	lines    map[string]int // by member, such as "id" and "plans[0].id"
}

// offering reads one offering.
func (r *reader) offering(n *yaml.Node) draft {
	d := draft{file: r.file, lines: map[string]int{}}
	o, ok := r.object(n, "", "id", "name", "description", "tags", "requires", "bindable", "instances_retrievable",
		"bindings_retrievable", "allow_context_updates", "metadata", "dashboard_client", "dashboard_url", "plan_updateable", "plans", "provider")
	if !ok {
		return d
	}
	d.offering = Offering{
		ID:                   o.id("id"),
		Name:                 o.name("name"),
		Description:          o.description("description"),
		Tags:                 o.tags("tags"),
		Requires:             o.requires("requires"),
		Bindable:             o.isTrue("bindable"),
		InstancesRetrievable: o.isTrue("instances_retrievable"),
		BindingsRetrievable:  o.isTrue("bindings_retrievable"),
		AllowContextUpdates:  o.isTrue("allow_context_updates"),
		Metadata:             o.metadata("metadata"),
		DashboardClient:      o.dashboardClient("dashboard_client"),
		DashboardURL:         o.dashboardURL("dashboard_url"),
		PlanUpdateable:       o.isTrue("plan_updateable"),
		Provider:             o.provider("provider"),
	}
	o.require("bindable", "write true if applications can be bound to instances, else false")
	d.lines["id"], d.lines["name"] = o.lineOf("id"), o.lineOf("name")
	d.lines["dashboard_client"] = o.lineOf("dashboard_client")

	o.require("plans", "list at least one plan")
	items := o.list("plans")
	if m, given := o.members["plans"]; given && m.value.Kind == yaml.SequenceNode && len(items) == 0 {
		o.problem("plans", "holds no plan", "list at least one plan")
	}
	for i, item := range items {
		path := fmt.Sprintf("plans[%d]", i)
		po, ok := r.object(item, path, "id", "name", "description", "metadata", "free", "bindable", "plan_updateable",
			"binding_rotatable", "maximum_polling_duration", "typical_duration", "maintenance_info", "schemas",
			"asynchronous", "asynchronous_binding", "requires_app", "settings")
		if !ok {
			continue
		}
		plan, checks := po.plan()
		agree(d.offering, o.given["bindable"], plan, po)
		d.offering.Plans = append(d.offering.Plans, plan)
		d.checks = append(d.checks, checks)
		// Plans that could not be read are skipped: lines go by the index of
		// those that were.
		at := fmt.Sprintf("plans[%d]", len(d.offering.Plans)-1)
		d.lines[at+".id"], d.lines[at+".name"] = po.lineOf("id"), po.lineOf("name")
	}
	return d
}

// plan reads one plan.
func (o object) plan() (Plan, planChecks) {
	schemas, checks := o.schemas("schemas")
	return Plan{
		ID:                     o.id("id"),
		Name:                   o.name("name"),
		Description:            o.description("description"),
		Metadata:               o.metadata("metadata"),
		Free:                   o.flag("free"),
		Bindable:               o.flag("bindable"),
		PlanUpdateable:         o.flag("plan_updateable"),
		BindingRotatable:       o.flag("binding_rotatable"),
		MaximumPollingDuration: o.seconds("maximum_polling_duration"),
		TypicalDuration:        o.seconds("typical_duration"),
		MaintenanceInfo:        o.maintenanceInfo("maintenance_info"),
		Schemas:                schemas,
		Asynchronous:           o.mode("asynchronous", Allowed),
		AsynchronousBinding:    o.mode("asynchronous_binding", Never),
		RequiresApp:            o.isTrue("requires_app"),
		Settings:               o.settings("settings"),
	}, checks
}

// settings are what the operator fixed, small enough for a record.
func (o object) settings(name string) map[string]any {
	v := o.mapping(name, form{nulls: true})
	if j, err := json.Marshal(v); err != nil || len(j) > limits.Settings {
		o.problem(name, fmt.Sprintf("is larger than %d bytes of JSON", limits.Settings), "shorten it")
	}
	return v
}

func (o object) id(name string) string {
	o.require(name, "give it an id that never changes, best a new UUID") // CAT-02, CAT-03, CAT-07
	id := o.text(name, maxName)
	if id != "" && !printableID.MatchString(id) {
		o.problem(name, "holds blanks or characters beyond ASCII", "use a UUID")
		return ""
	}
	return id
}

func (o object) name(name string) string {
	o.require(name, "give it a name of lower-case letters, digits and hyphens")
	v := o.text(name, maxName)
	if v != "" && !friendlyName.MatchString(v) {
		o.problem(name, fmt.Sprintf("%q is not a name that command lines can use", v),
			"use lower-case letters, digits, hyphens and full stops only")
	}
	return v
}

func (o object) description(name string) string {
	o.require(name, "say in a sentence what it is")
	return o.text(name, maxDescription)
}

func (o object) tags(name string) []string {
	tags := o.texts(name)
	if utf8.RuneCountInString(strings.Join(tags, "")) > maxTags {
		o.problem(name, fmt.Sprintf("holds more than %d characters", maxTags), "use fewer or shorter tags")
	}
	return tags
}

// requires are the permissions of CAT-09.
func (o object) requires(name string) []string {
	known := []string{"syslog_drain", "route_forwarding", "volume_mount"}
	values := o.texts(name)
	seen := map[string]bool{}
	for _, v := range values {
		switch {
		case !slices.Contains(known, v):
			o.problem(name, fmt.Sprintf("names an unknown permission %q", v), choose(v, known))
		case seen[v]:
			o.problem(name, fmt.Sprintf("names %q twice", v), "name it once")
		}
		seen[v] = true
	}
	return values
}

func (o object) provider(name string) string {
	o.require(name, "name what makes the instances: "+strings.Join(o.r.providers, ", "))
	v := o.text(name, maxName)
	if v != "" && !slices.Contains(o.r.providers, v) {
		o.problem(name, fmt.Sprintf("names an unknown provider %q", v), choose(v, o.r.providers))
	}
	return v
}

func (o object) mode(name string, absent Mode) Mode {
	m, ok := o.members[name]
	if !ok {
		return absent
	}
	switch v := Mode(m.value.Value); v { // empty when it is no scalar
	case Never, Allowed, Required:
		return v
	}
	o.problem(name, "is not one of the modes", choose(m.value.Value, []string{string(Never), string(Allowed), string(Required)}))
	return absent
}

// dashboardClient is emitted whole or not at all (CAT-12).
func (o object) dashboardClient(name string) *DashboardClient {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	c, ok := o.r.object(m.value, join(o.path, name), "id", "secret", "redirect_uri")
	if !ok {
		return nil
	}
	for _, part := range []string{"id", "secret", "redirect_uri"} {
		c.require(part, "give id, secret and redirect_uri, or remove the whole "+name)
	}
	return &DashboardClient{
		ID:          c.text("id", maxName),
		Secret:      c.text("secret", maxDescription),
		RedirectURI: c.text("redirect_uri", maxDescription),
	}
}

// dashboardURL is each instance's own, and what a user follows (PROV-24).
func (o object) dashboardURL(name string) string {
	const remedy = "write an address such as https://dashboard.example.com/instances/" + InstancePlaceholder
	s := o.text(name, maxDescription)
	if s == "" {
		return ""
	}
	one := Offering{DashboardURL: s}.DashboardOf("i")
	u, err := url.Parse(one)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(one, " {}"):
		o.problem(name, "is not an https address", remedy)
	case !strings.Contains(s, InstancePlaceholder):
		o.problem(name, "is the same for all instances: it lacks "+InstancePlaceholder, remedy)
	case len(Offering{DashboardURL: s}.DashboardOf(strings.Repeat("%", limits.Identifier))) > limits.DashboardURL:
		o.problem(name, fmt.Sprintf("can become longer than %d bytes: an instance's id may have %d, each of which may become three",
			limits.DashboardURL, limits.Identifier), "shorten it, and name "+InstancePlaceholder+" once")
	}
	return s
}

func (o object) seconds(name string) int {
	m, ok := o.members[name]
	if !ok {
		return 0
	}
	const remedy = "write whole seconds, at least 1, without quotes"
	var seconds int
	if m.value.Kind != yaml.ScalarNode || m.value.ShortTag() != "!!int" || m.value.Decode(&seconds) != nil {
		o.problem(name, "is not an integer", remedy)
		return 0
	}
	// Above 32 bits no platform can store it, and sums of times overflow.
	if seconds < 1 || seconds > math.MaxInt32 {
		o.problem(name, fmt.Sprintf("is not between 1 and %d", math.MaxInt32), remedy)
		return 0
	}
	return seconds
}

func (o object) maintenanceInfo(name string) *MaintenanceInfo {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	i, ok := o.r.object(m.value, join(o.path, name), "version", "description")
	if !ok {
		return nil
	}
	i.require("version", "write it as MAJOR.MINOR.PATCH in quotes, such as \"1.0.0\"")
	info := &MaintenanceInfo{Version: i.text("version", maxName), Description: i.text("description", maxDescription)}
	if info.Version != "" && !semanticVersion.MatchString(info.Version) {
		i.problem("version", fmt.Sprintf("%q is not a semantic version", info.Version), "write it as MAJOR.MINOR.PATCH, such as \"1.0.0\"")
	}
	if j, err := json.Marshal(info); err != nil || utf8.RuneCount(j) > maxMaintenance {
		o.problem(name, fmt.Sprintf("is longer than %d characters of JSON", maxMaintenance), "shorten the description")
	}
	return info
}
