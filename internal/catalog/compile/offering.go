package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/schema"
)

const (
	maxTags        = 2048 // characters of all tags together (CAT-08)
	maxMaintenance = 2000 // characters of the member's JSON (CAT-24)
)

// fill builds the offering from a value, and checks what the schema of offering files cannot say.
func (d *draft) fill(v any) {
	text, _ := json.Marshal(v) // draft.value returns only what JSON can express
	// A member of the wrong type has been refused already, and is left out.
	d.offering, _ = catalog.Decode(text)
	o := &d.offering
	o.Metadata = given(o.Metadata)
	if utf8.RuneCountInString(strings.Join(o.Tags, "")) > maxTags {
		d.about("/tags", fmt.Sprintf("holds more than %d characters", maxTags), "use fewer or shorter tags")
	}
	if o.DashboardURL != "" && !d.bad["/dashboard_url"] {
		d.dashboard()
	}
	for i := range o.Plans {
		p, at := &o.Plans[i], fmt.Sprintf("/plans/%d", i)
		p.Metadata = given(p.Metadata)
		if p.Asynchronous == "" {
			p.Asynchronous = catalog.Allowed
		}
		if p.AsynchronousBinding == "" {
			p.AsynchronousBinding = catalog.Never
		}
		d.sizes(*p, at)
		d.agree(*p, at)
		d.schemas(p.Schemas, at+"/schemas")
	}
}

// given returns metadata, or nil for an empty object.
func given(metadata json.RawMessage) json.RawMessage {
	if string(bytes.TrimSpace(metadata)) == "{}" {
		return nil
	}
	return metadata
}

// sizes checks the members whose JSON is bounded in length.
func (d *draft) sizes(p catalog.Plan, at string) {
	if text, _ := json.Marshal(p.Settings); len(text) > limits.Settings { // JSON can express what it was decoded from
		d.about(at+"/settings", fmt.Sprintf("is larger than %d bytes of JSON", limits.Settings), "shorten it")
	}
	if text, _ := json.Marshal(p.MaintenanceInfo); utf8.RuneCount(text) > maxMaintenance {
		d.about(at+"/maintenance_info", fmt.Sprintf("is longer than %d characters of JSON", maxMaintenance),
			"shorten the description")
	}
}

// dashboard checks the address of each instance's dashboard, which users follow (PROV-24).
func (d *draft) dashboard() {
	u, err := url.Parse(d.offering.DashboardOf("i"))
	if err != nil || u.Host == "" {
		d.about("/dashboard_url", "is not an https address",
			"write an address such as https://dashboard.example.com/instances/"+catalog.InstancePlaceholder)
	}
	if len(d.offering.DashboardOf(strings.Repeat("%", limits.Identifier))) > limits.DashboardURL {
		d.about("/dashboard_url", fmt.Sprintf("can become longer than %d bytes: an instance's id may have %d, "+
			"each of which may become three",
			limits.DashboardURL, limits.Identifier), "shorten it, and name "+catalog.InstancePlaceholder+" once")
	}
}

// agree notes contradictions between a plan and its offering, or within the plan. A member
// without effect is refused as well, since the operator meant something by it. An offering that
// does not say whether it is bindable contradicts nothing.
func (d *draft) agree(p catalog.Plan, at string) {
	if p.AsynchronousBinding != catalog.Never && !d.offering.BindingsRetrievable {
		// CAT-18: the credentials of a binding that is made asynchronously are fetched.
		d.about(at+"/asynchronous_binding", fmt.Sprintf("is %s, but the offering's bindings cannot be fetched",
			p.AsynchronousBinding),
			"set bindings_retrievable: true on the offering")
	}
	if most := p.MaximumPollingDuration; most > 0 && p.TypicalDuration > most {
		d.about(at+"/typical_duration", "is longer than maximum_polling_duration, the deadline",
			"make it shorter, or the deadline longer")
	}
	if _, said := d.places["/bindable"]; d.offering.PlanBindable(p) || p.Bindable == nil && !said {
		return
	}
	for _, set := range []struct {
		member, what string
		is           bool
	}{
		{"/asynchronous_binding", "is set", p.AsynchronousBinding != catalog.Never},
		{"/binding_rotatable", "is true", p.BindingRotatable != nil && *p.BindingRotatable},
		{"/requires_app", "is true", p.RequiresApp},
		{"/schemas", "describes bindings", p.Schemas != nil && p.Schemas.ServiceBinding != nil},
	} {
		if set.is {
			d.about(at+set.member, set.what+" on a plan that is not bindable", "remove it, or set bindable: true on the plan")
		}
	}
}

// check lets the provider check a plan, and keeps the provider's snapshot of it.
func (d *draft) check(judge check.Func, plan int, l *lock, files fs.FS, keep func([]byte) string) {
	o := d.offering
	p, at := &o.Plans[plan], fmt.Sprintf("/plans/%d", plan)
	bindable := o.PlanBindable(*p)
	snapshot, err := judge(check.Plan{
		Offering: o.Name, Plan: p.Name, Settings: p.Settings, Files: files, Folder: path.Dir(d.file), Bindable: bindable,
		Deadline: time.Duration(p.MaximumPollingDuration) * time.Second, Keep: keep,
		Lock:     func(digest string) error { return l.check(*p, digest) },
		Describe: func(all check.Parameters) { p.Schemas = d.described(*p, bindable, at, all) },
		Warn:     func(w advice.Error) { d.warnings = append(d.warnings, d.located(w, at)) },
	})
	switch {
	case err != nil:
		d.refused(err, at)
	case len(snapshot) > limits.Snapshot:
		d.about(at+"/settings", fmt.Sprintf("make a snapshot that is larger than %d bytes", limits.Snapshot),
			"shorten them, and the files that they name")
	default:
		p.Snapshot = snapshot
	}
}

// described returns the schemas of a plan whose provider says what users may set. They are written
// in draft-04, with its exact URL: it is the only draft that every Cloud Controller accepts.
func (d *draft) described(p catalog.Plan, bindable bool, at string, all check.Parameters) *catalog.Schemas {
	if p.Schemas != nil {
		d.about(at+"/schemas", "says what users may set, which follows from the settings and the files beside them",
			"remove it: settings may narrow what follows")
		return p.Schemas
	}
	schemas := &catalog.Schemas{ServiceInstance: map[catalog.Verb]*catalog.ParametersSchema{
		catalog.Create: d.schemaOf(at, all.Properties, nil, all.Required),
		catalog.Update: d.schemaOf(at, all.Properties, all.Fixed, nil),
	}}
	if bindable {
		schemas.ServiceBinding = map[catalog.Verb]*catalog.ParametersSchema{catalog.Create: d.schemaOf(at, nil, nil, nil)}
	}
	return schemas
}

// schemaOf returns a schema of the properties, leaving out those in without.
func (d *draft) schemaOf(at string, properties map[string]any, without, required []string) *catalog.ParametersSchema {
	left := map[string]any{}
	for name, property := range properties {
		if !slices.Contains(without, name) {
			left[name] = property
		}
	}
	object := map[string]any{
		"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": left, "additionalProperties": false,
	}
	if len(required) > 0 {
		object["required"] = required
	}
	text, _ := json.Marshal(object) // a provider reads it from settings and files
	for _, v := range violationsOf(text) {
		d.about(at+"/settings", "make a schema in which "+v.Clause(), v.Remedy)
	}
	return &catalog.ParametersSchema{Parameters: text}
}

// refused notes each of a provider's errors about a plan.
func (d *draft) refused(err error, at string) {
	var wrong *advice.Error
	joined, several := err.(interface{ Unwrap() []error })
	switch {
	case several:
		for _, one := range joined.Unwrap() {
			d.refused(one, at)
		}
	case errors.As(err, &wrong):
		d.problems = append(d.problems, d.located(*wrong, at))
	default:
		d.about(at+"/settings", "are refused by the provider "+d.offering.Provider+": "+err.Error(), "correct them")
	}
}

// located gives a provider's error about a plan its place: a file beside the offering's, a
// setting, or the place in the plan that a pointer names.
func (d *draft) located(e advice.Error, at string) advice.Error {
	if e.File != "" {
		e.File = path.Join(path.Dir(d.file), e.File)
		return e
	}
	switch {
	case strings.HasPrefix(e.Name, "/"):
		at += e.Name
	case e.Name != "":
		at += "/settings/" + strings.ReplaceAll(schema.Escape(e.Name), ".", "/")
	default:
		at += "/settings"
	}
	at = d.stands(at)
	p, _ := d.nearest(at)
	e.File, e.Line, e.What = d.file, p.line, people(at)+" "+e.What
	return e
}

// duplicates notes every second use of a value that must be unique (CAT-04).
func duplicates(drafts []*draft) []advice.Error {
	var problems []advice.Error
	first := map[string]string{} // the place where a value is used, by scope and value
	// unique notes a problem if the value is used already in its scope.
	unique := func(scope, kind, value string, d *draft, at, mend string) {
		key, line := scope+"\x00"+value, d.places[at].line
		switch by, taken := first[key]; {
		case value == "": // the missing or wrong value is noted already
		case taken:
			problems = append(problems, advice.Error{File: d.file, Line: line,
				What: fmt.Sprintf("%s %q is used already (%s)", kind, value, by), Remedy: mend})
		case line > 0:
			first[key] = fmt.Sprintf("%s:%d", d.file, line)
		default:
			first[key] = d.file
		}
	}
	const (
		newID   = "give each offering and each plan its own id, best a new UUID"
		newName = "choose another name"
	)
	for i, d := range drafts {
		o := d.offering
		unique("id", "offering id", o.ID, d, "/id", newID)
		unique("offering name", "offering name", o.Name, d, "/name", newName)
		if o.DashboardClient != nil {
			unique("client", "dashboard_client.id", o.DashboardClient.ID, d, "/dashboard_client",
				"register a client for each offering")
		}
		for j, p := range o.Plans {
			at := fmt.Sprintf("/plans/%d", j)
			unique("id", "plan id", p.ID, d, at+"/id", newID)
			unique(fmt.Sprintf("plan name %d", i), "plan name", p.Name, d, at+"/name", newName)
		}
	}
	return problems
}
