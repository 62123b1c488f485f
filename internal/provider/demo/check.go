package demo

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
)

// secretCloud and secretBroker are the values of the setting "secret".
const (
	secretCloud  = "cloud"
	secretBroker = "broker"
)

// settings are what instances record of their plan. Defaults are left out: a member that
// a later version adds must not make every plan look edited.
type settings struct {
	Secret string `json:"secret,omitempty"` // the broker's own unless it is secretCloud
	// RetainDays is how long what is deleted is retained; zero for not at all.
	RetainDays float64 `json:"retain_days,omitempty"`
}

// Check finds what is wrong with the settings of a plan. What instances record
// of it is who chooses their bindings' secrets, and whether they are retained.
func Check(plan provider.Checked) (json.RawMessage, error) {
	known := []struct {
		name, remedy string
		ok           func(any) bool
	}{
		{"delay_seconds", "write a number from 0 to 604800", func(v any) bool { return new(wishes).setDelay(v) }},
		{"fail", "write provision, update, deprovision, bind or unbind, or a list of them",
			func(v any) bool { return new(wishes).setPlanFail("", v) }},
		{"grant", "write volume, route or syslog, or leave it out", func(v any) bool { return v == "volume" || v == "route" || v == "syslog" }},
		{"valid_days", "write a number of days up to 3650", daysOf},
		{"retain_days", "write a number of days up to 3650", daysOf},
		{"secret", "write cloud or broker, or leave it out", func(v any) bool { return v == secretCloud || v == secretBroker }},
	}
	unknown := maps.Clone(plan.Settings)
	for _, setting := range known {
		delete(unknown, setting.name)
		if v, ok := plan.Settings[setting.name]; ok && !setting.ok(v) {
			return nil, &advice.Error{Name: setting.name, What: "the demo does not understand this value", Remedy: setting.remedy}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		return nil, &advice.Error{Name: name, What: "the demo has no such setting",
			Remedy: "remove it, or write one of delay_seconds, fail, grant, valid_days, retain_days and secret"}
	}
	var recorded settings
	if plan.Settings["secret"] == secretCloud {
		recorded.Secret = secretCloud
	}
	recorded.RetainDays, _ = number(plan.Settings["retain_days"])
	return json.Marshal(recorded)
}

// daysOf reports whether a setting is a number of days.
func daysOf(v any) bool {
	days, ok := number(v)
	return ok && days > 0 && days <= maxValidDays
}
