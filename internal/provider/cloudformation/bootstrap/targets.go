package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/base/suggest"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// These are the patterns of the parts of targets. They are compiled on use: as variables, they
// would be compiled at each start of a function.
const (
	formAccount    = `^[0-9]{12}$`
	formRegion     = `^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`
	formRole       = `^arn:aws[a-z-]*:iam::([0-9]{12}):role/[\x21-\x7e]{1,500}$`
	formExternalID = `^[A-Za-z0-9+=,.@:/_-]{2,1000}$`
	formVPC        = `^vpc-[0-9a-f]{8,17}$`
	formSubnet     = `^subnet-[0-9a-f]{8,17}$`
)

// ParseTargets reads targets from JSON, or from a file if the text is a path. The error names
// everything that is wrong. An empty text means the default target alone.
func ParseTargets(setting, text string) (t plan.Targets, err error) {
	text = strings.TrimSpace(text)
	if text != "" && !strings.HasPrefix(text, "{") {
		file, err := os.ReadFile(text)
		if err != nil {
			return t, &advice.Error{Name: setting, What: fmt.Sprintf("names %q, which cannot be read", text),
				Remedy: "give the path of a file that holds the targets as JSON, or the JSON itself", Cause: err}
		}
		setting, text = fmt.Sprintf("%s (%s)", setting, text), strings.TrimPrefix(string(file), "\ufeff")
	}
	if text != "" {
		if err := decodeStrictly(setting, []byte(text), &t); err != nil {
			return t, err
		}
	}
	if t.Targets == nil {
		t.Targets = map[string]plan.Target{}
	}
	if _, given := t.Targets[plan.DefaultTarget]; !given {
		t.Targets[plan.DefaultTarget] = plan.Target{}
	}
	return t, checkTargets(setting, t)
}

// decodeStrictly decodes JSON, and refuses unknown members.
func decodeStrictly(setting string, text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && len(bytes.TrimSpace(text[d.InputOffset():])) > 0 {
		err = errors.New("something follows the end of the object")
	}
	if err == nil {
		return nil
	}
	mend := `write {"targets": {NAME: {"account": …, "region": …, "role": …, "external_id": …, "vpc": …, "subnets": […], ` +
		`"cidrs": […]}}, "rules": [{"plan": "OFFERING/PLAN", "platform": ID, "target": NAME}]}`
	return &advice.Error{Name: setting, What: "is not JSON of the expected form", Remedy: mend, Cause: err}
}

// checkTargets finds everything that is wrong with the targets.
func checkTargets(setting string, t plan.Targets) error {
	var problems []error
	for name, one := range sorted.Map(t.Targets) {
		wrong := func(member, what, mend string) {
			problems = append(problems, advice.For(fmt.Sprintf("%s: target %q", setting, name),
				strings.TrimSpace(member+" "+what), mend))
		}
		if !hosted.TargetName.MatchString(name) {
			wrong("", "has a name that no plan can give", "name it by lower-case letters, digits and hyphens, 32 at most")
		}
		checkTarget(one, name == plan.DefaultTarget, wrong)
	}
	names := t.Names()
	for n, r := range t.Rules {
		wrong := func(what, mend string) {
			problems = append(problems, advice.For(fmt.Sprintf("%s: rule %d", setting, n+1), what, mend))
		}
		if _, known := t.Targets[r.Target]; !known {
			wrong(fmt.Sprintf("names target %q, which does not exist", r.Target),
				suggest.Meant(r.Target, names, "name one of: "+strings.Join(names, ", ")))
		}
		if r.Plan != "" && strings.Count(r.Plan, "/") != 1 {
			wrong(fmt.Sprintf("is of the plan %q", r.Plan), "give OFFERING/PLAN, by their names")
		}
	}
	return errors.Join(problems...)
}

// checkTarget finds everything that is wrong with one target. The default target must have no
// account or region: it is the broker's own, which the SDK's settings say.
func checkTarget(t plan.Target, own bool, wrong func(member, what, mend string)) {
	match := func(member, value, form, mend string) {
		if value != "" && !regexp.MustCompile(form).MatchString(value) {
			wrong(member, fmt.Sprintf("is %q", value), mend)
		}
	}
	match("account", t.Account, formAccount, "give the 12 digits of the account")
	match("region", t.Region, formRegion, "give one such as eu-central-1")
	match("role", t.Role, formRole, "give the whole ARN that `longshore aws bootstrap` prints in that account")
	match("external_id", t.ExternalID, formExternalID, "give the one that `longshore aws bootstrap` prints in that account")
	match("vpc", t.VPC, formVPC, "give the id of a VPC, such as vpc-0123456789abcdef0")
	for _, s := range t.Subnets {
		match("subnets", s, formSubnet, "give ids of subnets, such as subnet-0123456789abcdef0")
	}
	for _, c := range t.CIDRs {
		if p, err := netip.ParsePrefix(c); err != nil || p != p.Masked() {
			wrong("cidrs", fmt.Sprintf("has %q", c), "give networks such as 10.0.0.0/16")
		}
	}
	var of []string
	if t.Role != "" {
		of = regexp.MustCompile(formRole).FindStringSubmatch(t.Role)
	}
	switch {
	case own && (t.Account != "" || t.Region != "" || t.Role != "" || t.ExternalID != ""):
		wrong("", "is where the broker itself works, and has an account, a region, a role or an external id",
			"leave them out, and give a target of another name")
	case t.Role != "" && t.ExternalID == "":
		wrong("role", "is given without an external id",
			"give the external_id that `longshore aws bootstrap` prints in that account: without "+
				"one, whoever else may use the role by your broker's account could have the broker use it")
	case t.Role == "" && t.ExternalID != "":
		wrong("external_id", "is given without a role", "give the role that `longshore aws bootstrap` prints in that account")
	case t.Role == "" && t.Account != "":
		wrong("account", "is given without a role", "give the role that `longshore aws bootstrap` prints in that account")
	case of != nil && t.Account != "" && of[1] != t.Account:
		wrong("role", "is of account "+of[1], "give the role of account "+t.Account)
	}
}
