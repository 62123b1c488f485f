package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/kit/cloudcontroller"
)

// A life is the life of one instance, from the catalog to its deletion.
type life struct {
	trial
	out       io.Writer
	line      *progress
	exchanges []cloudcontroller.Exchange

	service           cloudcontroller.Service
	plan              cloudcontroller.Plan
	instance, binding string
	granted           map[string]any
	steps             []step
	at                int
	polls             int    // counted for the current step
	said              string // what the current step has found
	failed            bool
	interrupted       bool
}

// A step is one step of a life.
type step struct {
	name string
	do   func(ctx context.Context) error
}

// The number of tries to delete what the trial made, and the first pause, which doubles each time.
const (
	cleanTries = 5
	firstPause = time.Second
)

// live runs all steps. Whatever happens, what was made is deleted.
func (l *life) live(ctx context.Context) error {
	began := time.Now()
	l.client.Observe = l.observe
	l.instance, l.binding = app.NewUUID(), app.NewUUID()
	offered, err := l.client.Catalog(ctx)
	if err != nil {
		err = l.reason(err)
	} else {
		err = l.choose(offered)
	}
	if err != nil {
		l.line.end()
		return &cannotRun{err}
	}
	l.plant()
	l.say("plan", "%s/%s, instance %s", l.service.Name, l.plan.Name, l.instance)
	for l.at = range l.steps {
		if ctx.Err() != nil {
			break
		}
		if l.failed = !l.take(ctx, l.steps[l.at]); l.failed {
			break
		}
	}
	l.line.end()
	if ctx.Err() != nil {
		l.failed, l.interrupted = true, true
		l.line.line("interrupted: what was made is being deleted; Ctrl-C again ends at once")
	}
	left := false
	if l.failed || !l.keep {
		left = !l.clean(context.WithoutCancel(ctx))
	}
	l.verdict(left, time.Since(began))
	if l.failed || left {
		return errors.New("the trial has failed")
	}
	return nil
}

// reason explains why a broker could not be asked, and what to do.
func (l *life) reason(err error) error {
	var f *cloudcontroller.Failure
	switch {
	case !errors.As(err, &f):
		return err
	case f.Status == 0:
		return fmt.Errorf("nothing answers as a broker at %s: start it, or mend the URL. %s", l.client.URL, f.Description)
	case f.Status == http.StatusUnauthorized:
		return fmt.Errorf("%s Give the platform's login by --username and %s", f.Description, app.EnvPassword)
	case f.Status == http.StatusNotFound:
		return fmt.Errorf("there is no broker at %s: its /v2/catalog answers 404. Give the URL up to /v2. It says: %s",
			l.client.URL, f.Description)
	default:
		return errors.New(f.Description)
	}
}

// choose finds the plan: the named one, or the first free plan of the first service.
func (l *life) choose(offered cloudcontroller.Catalog) error {
	matches := func(wanted, id, name string) bool { return wanted == "" || wanted == id || wanted == name }
	var all []string
	found := false
	for _, s := range offered.Services {
		for _, p := range s.Plans {
			all = append(all, s.Name+"/"+p.Name)
			if matches(l.options.Service, s.ID, s.Name) && matches(l.options.Plan, p.ID, p.Name) &&
				(!found || s.ID == l.service.ID && !l.plan.IsFree() && p.IsFree()) {
				found, l.service, l.plan = true, s, p
			}
		}
	}
	if !found {
		return notOffered(all, l.options.Service, l.options.Plan)
	}
	for _, needed := range []struct {
		flag   string
		given  map[string]any
		schema cloudcontroller.Schema
	}{
		{"--parameters", l.options.Parameters, l.plan.Schemas.Instance.Create},
		{"--bind-parameters", l.options.BindParameters, l.plan.Schemas.Binding.Create},
	} {
		if names := needed.schema.Required(); needed.given == nil && len(names) > 0 {
			return fmt.Errorf("plan %s/%s requires %s: give them with %s", l.service.Name, l.plan.Name,
				strings.Join(names, ", "), needed.flag)
		}
	}
	return nil
}

// notOffered says what the catalog has in place of what was named.
func notOffered(all []string, service, plan string) error {
	what := fmt.Sprintf("plan %q", plan)
	switch {
	case len(all) == 0:
		return errors.New("the catalog has no plans")
	case plan == "":
		what = fmt.Sprintf("service %q", service)
	case service != "":
		what += fmt.Sprintf(" of a service %q", service)
	}
	return fmt.Errorf("the catalog has no %s: it has %s", what, strings.Join(all, ", "))
}

// plant decides on the steps of the life.
func (l *life) plant() {
	add := func(wanted bool, name string, do func(ctx context.Context) error) {
		if wanted {
			l.steps = append(l.steps, step{name, do})
		}
	}
	binds, fetches := l.bind && l.service.CanBind(l.plan), l.client.APIVersion >= 14
	add(true, "provision", l.provision)
	add(l.service.InstancesRetrievable && fetches, "fetch", l.fetch)
	add(binds, "bind", l.bound)
	add(binds && l.service.BindingsRetrievable && fetches, "fetch binding", l.fetchBinding)
	add(binds && !l.keep, "unbind", func(ctx context.Context) error { return l.client.Unbind(ctx, l.instance, l.binding) })
	add(!l.keep, "deprovision", func(ctx context.Context) error { return l.client.Deprovision(ctx, l.instance) })
	add(!l.keep && l.service.InstancesRetrievable && fetches, "is it gone", l.gone)
}

func (l *life) provision(ctx context.Context) error {
	return l.client.Provision(ctx, cloudcontroller.ProvisionRequest{
		ID: l.instance, ServiceID: l.service.ID, PlanID: l.plan.ID, OrganizationGUID: app.NewUUID(), SpaceGUID: app.NewUUID(),
		Parameters: l.options.Parameters,
	})
}

func (l *life) fetch(ctx context.Context) error {
	body, err := l.client.FetchInstance(ctx, l.instance)
	if plan, given := body["plan_id"]; err == nil && given && plan != l.plan.ID {
		err = errors.New("the instance has another plan than the one it was created with")
	}
	return err
}

func (l *life) bound(ctx context.Context) (err error) {
	q := cloudcontroller.BindRequest{InstanceID: l.instance, ID: l.binding, Parameters: l.options.BindParameters}
	if !l.key {
		q.AppGUID = app.NewUUID()
	}
	l.granted, err = l.client.Bind(ctx, q)
	credentials, _ := l.granted["credentials"].(map[string]any)
	l.said = fmt.Sprintf("%d credentials", len(credentials))
	return err
}

func (l *life) fetchBinding(ctx context.Context) error {
	body, err := l.client.FetchBinding(ctx, l.instance, l.binding)
	if err == nil && !reflect.DeepEqual(body["credentials"], l.granted["credentials"]) {
		err = errors.New("the credentials differ from those that the bind returned")
	}
	return err
}

// gone checks that the deleted instance can no longer be fetched.
func (l *life) gone(ctx context.Context) error {
	_, err := l.client.FetchInstance(ctx, l.instance)
	var f *cloudcontroller.Failure
	switch {
	case err == nil:
		return errors.New("the instance was deleted and can still be fetched")
	case errors.As(err, &f) && (f.Status == http.StatusNotFound || f.Status == http.StatusGone):
		return nil
	default:
		return err
	}
}

// take runs one step and prints its outcome. An interruption is not a failure of the broker.
func (l *life) take(ctx context.Context, s step) bool {
	began := time.Now()
	l.polls, l.said = 0, ""
	l.show("")
	err := s.do(ctx)
	took := round(time.Since(began))
	var f *cloudcontroller.Failure
	switch {
	case err == nil:
		done := fmt.Sprintf("done in %v", took)
		if l.said != "" {
			done += ", " + l.said
		}
		if l.polls > 0 {
			done += fmt.Sprintf(", polled %d times", l.polls)
		}
		l.say(s.name, "%s", done)
	case ctx.Err() != nil:
		l.say(s.name, "interrupted after %v", took)
		return true
	case errors.As(err, &f):
		what := ""
		if f.Status >= http.StatusMultipleChoices {
			what = strings.TrimSpace(fmt.Sprint(f.Status, " ", f.Code)) + ": "
		}
		l.say(s.name, "FAILED after %v: %s%s", took, what, f.Description)
		if f.Then != "" {
			l.say("", "%s", f.Then)
		}
	default:
		l.say(s.name, "FAILED after %v: %v", took, err)
	}
	return err == nil
}

// round rounds a duration to its significant digits.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// clean deletes what the platform still considers existing, and reports whether nothing is left.
func (l *life) clean(ctx context.Context) bool {
	for n := range cleanTries {
		left := l.client.Instances()
		if len(left) == 0 {
			break
		}
		if n > 0 {
			_ = l.client.Sleep(ctx, firstPause<<(n-1))
		}
		for _, i := range left {
			l.take(ctx, step{"clean up", func(ctx context.Context) error { return l.client.Deprovision(ctx, i.ID) }})
		}
	}
	l.line.end()
	return len(l.client.Instances()) == 0
}

func (l *life) verdict(left bool, took time.Duration) {
	l.line.end()
	for _, i := range l.client.Instances() {
		if left {
			l.say("LEFT BEHIND", "instance %s of %s/%s (%s): remove it by hand", i.ID, l.service.Name, l.plan.Name, i.State)
		} else {
			l.say("kept", "instance %s, service_id=%s, plan_id=%s", i.ID, i.ServiceID, i.PlanID)
		}
	}
	for _, b := range l.client.Bindings() {
		l.say(map[bool]string{true: "LEFT BEHIND", false: "kept"}[left], "binding %s", b.ID)
	}
	what := "Everything went right, and nothing is left, after"
	switch {
	case left:
		what = "Something was left behind, after"
	case l.interrupted:
		what = "Interrupted, and nothing is left, after"
	case l.failed:
		what = "Something failed, and nothing is left, after"
	case l.keep:
		what = "Everything went right, and what was made is kept, after"
	}
	printf(l.out, "\n%s %v.\n", what, round(took))
}

// observe adds an exchange to the transcript, and shows how far the operation has come.
func (l *life) observe(e cloudcontroller.Exchange) {
	l.exchanges = append(l.exchanges, e)
	description := e.Decided
	if path, _, _ := strings.Cut(e.Path, "?"); strings.HasSuffix(path, "/last_operation") {
		l.polls++
		description = cmp.Or(l.described(), description)
	}
	l.show(description)
}

// described returns the broker's description of the running operation.
func (l *life) described() string {
	for _, b := range l.client.Bindings() {
		return b.Description
	}
	for _, i := range l.client.Instances() {
		return i.Description
	}
	return ""
}

// show draws the progress bar on a terminal.
func (l *life) show(description string) {
	if !l.line.terminal || len(l.steps) == 0 {
		return
	}
	l.line.change(fmt.Sprintf("%s %d of %d, %s: %.60s", bar(100*l.at/len(l.steps)), l.at+1, len(l.steps), l.steps[l.at].name,
		cmp.Or(oneLine(description), "…")))
}

// say prints a line of the report on the life.
func (l *life) say(what, format string, args ...any) {
	l.line.end()
	printf(l.out, "%-14s %s\n", what, oneLine(fmt.Sprintf(format, args...)))
}
