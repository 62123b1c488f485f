package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/test/expect"
)

func settingsOf(context map[string]any) (Settings, error) {
	return ReadSettings(func(name string) any { return context[name] })
}

// providersWith are all providers, off but for the demo.
func providersWith(demo string) map[string]string {
	all := map[string]string{}
	for _, name := range providers.Names() {
		all[name] = Off
	}
	all[app.ProviderDemo] = demo
	return all
}

func TestReadSettings(t *testing.T) {
	with := func(change func(s *Settings)) Settings {
		s := Settings{Stack: "Longshore", Architecture: "arm64", LogDays: 30, ThrottleRate: 50, ThrottleBurst: 100,
			PlatformRate: 25, KeyRotation: 365, Concurrency: map[string]int{}, Code: "../dist", Providers: providersWith(Off)}
		change(&s)
		return s
	}
	usual := with(func(*Settings) {})
	for name, test := range map[string]struct {
		reason  string
		context map[string]any
		want    Settings
	}{
		"Nothing": {"everything has a default", nil, usual},
		"Everything": {"the command line gives text", map[string]any{
			"stack": "Other-2", "architecture": "x86_64", "code": "built", "demo": "withdrawn", "demo-delay": "1m30s",
			"offerings": "mine", "log-days": "365", "throttle-rate": "1", "throttle-burst": "2000", "tracing": "true",
			"cli-credentials": "true", "api-concurrency": "20", "provisioner-concurrency": "0", "reaper-concurrency": "1",
		}, Settings{
			Stack: "Other-2", Architecture: "x86_64", LogDays: 365, Tracing: true, ThrottleRate: 1, ThrottleBurst: 2000,
			PlatformRate: 1, KeyRotation: 365, CLICredentials: true, Code: "built", Offerings: "mine",
			Concurrency: map[string]int{"api": 20, "provisioner": 0, "reaper": 1},
			Providers:   providersWith(Withdrawn), DemoDelay: "1m30s",
		}},
		"Typed": {"a file gives numbers and truths", map[string]any{"log-days": 7.0, "cli-credentials": true},
			with(func(s *Settings) { s.LogDays, s.CLICredentials = 7, true })},
		"NoDelay": {"the demo can be done at once", map[string]any{"demo-delay": "0s"},
			with(func(s *Settings) { s.DemoDelay = "0s" })},
		"No": {"what is switched off by name is off", map[string]any{"cli-credentials": "false", "tracing": "false"}, usual},
		"Longest": {"a stack's name may be as long as this", map[string]any{"stack": strings.Repeat("a", 64)},
			with(func(s *Settings) { s.Stack = strings.Repeat("a", 64) })},
		"Reserved": {"what settles operations has places of its own", map[string]any{"reserved-concurrency": "5"},
			with(func(s *Settings) { s.Concurrency = map[string]int{"provisioner": 5, "reaper": 1} })},
		"ReservedBut": {"a function's own number counts", map[string]any{"reserved-concurrency": "5", "reaper-concurrency": "2"},
			with(func(s *Settings) { s.Concurrency = map[string]int{"provisioner": 5, "reaper": 2} })},
		"Reach": {"who reaches it, and how, is chosen", map[string]any{
			"allow-cidrs": "192.0.2.0/24, 2001:db8::/32", "web-acl": "rate", "platform-rate": "50",
			"domain": "broker.example.com", "base-path": "/broker",
			"certificate": "arn:aws:acm:eu-central-1:111122223333:certificate/c", "hosted-zone": "Z1",
			"alarm-email": "ops@example.com",
		}, with(func(s *Settings) {
			s.Allowed, s.WebACL, s.PlatformRate = []string{"192.0.2.0/24", "2001:db8::/32"}, "rate", 50
			s.Domain, s.Certificate = "broker.example.com", "arn:aws:acm:eu-central-1:111122223333:certificate/c"
			s.HostedZone, s.BasePath, s.AlarmEmail = "Z1", "/broker", "ops@example.com"
		})},
		"Unbounded": {"one platform alone may have everything", map[string]any{"platform-rate": "0"},
			with(func(s *Settings) { s.PlatformRate = 0 })},
		"Other": {"what others read is not ours to refuse", map[string]any{"@aws-cdk/core:target": "x"}, usual},
	} {
		expect.Same(t, name+": "+test.reason, test.want, expect.Get(settingsOf(test.context))(t, name+": "+test.reason))
	}
}

// A setting of the schema that no field has would be judged, and then lost.
func TestEverySettingOfTheSchemaIsRead(t *testing.T) {
	var declared struct{ Properties map[string]any }
	if err := json.Unmarshal(settingsText, &declared); err != nil {
		t.Fatal(err)
	}
	for name := range declared.Properties {
		if strings.HasSuffix(name, ContextConcurrency) || name == providerRows[app.ProviderDemo].vpcContext {
			continue // read by their names
		}
		into := json.NewDecoder(strings.NewReader(`{"` + name + `": null}`))
		into.DisallowUnknownFields()
		if err := into.Decode(new(Settings)); err != nil {
			t.Error(err)
		}
	}
}

// A value whose name is misspelt would be as if it were not given.
func TestWhatNobodyReadsIsToldOf(t *testing.T) {
	given := []string{"alarm-emial", "alarm-email", "stack", "aws:cdk:enable-path-metadata", "@aws-cdk/core:target", "domian"}
	expect.Same(t, "what nobody reads", []string{"alarm-emial", "domian"}, unknown(given))
	stack := expect.Get(build(map[string]any{ContextAlarmTopic: "arn:aws:sns:eu-central-1:111122223333:operators"}))(t)
	warnOfUnknown(stack, []string{"stack"})
	if said := findings(t, stack); len(said) > 0 {
		t.Errorf("without reason it is said that %q", said)
	}
	warnOfUnknown(stack, given)
	expect.Says(t, "what is said", strings.Join(findings(t, stack), ""), "alarm-emial, domian. It knows: alarm-email, ")
}

// Every output of the stack is on the page that says what it deploys.
func TestEveryOutputIsOnThePage(t *testing.T) {
	page := expect.Get(os.ReadFile("../docs/aws.md"))(t)
	for name := range must(t, hostedStack).Outputs {
		expect.Says(t, "docs/aws.md", string(page), "`"+name+"`")
	}
}

// Every setting is on the page of settings.
func TestEveryContextValueIsInTheGuide(t *testing.T) {
	guide := expect.Get(os.ReadFile("../docs/settings.md"))(t)
	for _, name := range contextNames() {
		expect.Says(t, "docs/settings.md", string(guide), "-c "+name+"=")
	}
}

// A badValue is refused with its remedy.
type badValue struct {
	reason, name string
	value        any
	remedy       string
}

func TestEveryBadValueIsNamed(t *testing.T) {
	const (
		aName = `give a name of up to 64 letters, digits and hyphens that begins with a letter`
		aPath = `give a path such as /broker, without a slash at its end`
		aFlag = `give true or false`
		from0 = `give a whole number from 0`
		from1 = `give a whole number from 1`
	)
	for name, test := range map[string]badValue{
		"Stack":      {"CloudFormation takes no such name", "stack", "my_stack", aName},
		"StackDigit": {"nor one that begins so", "stack", "1st", aName},
		"StackNone":  {"empty is not unset", "stack", "", aName},
		"StackLong":  {"every name is made of it", "stack", strings.Repeat("a", 65), aName},
		"StackLines": {"a line's end is no letter", "stack", "a\n", aName},
		"Machine":    {"Lambda names it otherwise", "architecture", "amd64", `give arm64 or x86_64`},
		"Demo": {"the demo is there or not", "demo", "maybe",
			`give true, false, or withdrawn to offer it no more and be able to delete what exists`},
		"Days": {"CloudWatch keeps logs for some numbers of days only", "log-days", "31",
			`give one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365`},
		"DaysWords": {"a number is a number", "log-days", "month", from1},
		"DaysHalf":  {"and a whole one", "log-days", 1.5, from1},
		"Rate":      {"a rate of none would serve nobody", "throttle-rate", "0", from1},
		"Burst":     {"nor would less", "throttle-burst", "-1", from1},
		"Tracing":   {"it is or it is not", "tracing", "some", aFlag},
		"Broker": {"it goes into names and tags", "broker", "a b",
			`give the identity that the other stack gave as its output Broker`},
		"Topic":       {"a topic is named by its ARN", "alarm-topic", "operators", `give the ARN of an SNS topic`},
		"Base":        {"a path begins with a slash", "base-path", "broker", aPath},
		"BaseSlash":   {"and does not end with one", "base-path", "/broker/", aPath},
		"BaseLetters": {"the value of a stage's variable takes few letters", "base-path", "/a b", aPath},
		"Flag":        {"yes is no truth", "cli-credentials", "yes", aFlag},
		"Reserved":    {"each function's number is checked", "api-concurrency", "-1", from0},
		"ReservedBy":  {"of each", "provisioner-concurrency", "x", from0},
		"ReservedOf":  {"function", "reaper-concurrency", "", from0},
		"Reserving":   {"none is no reservation", "reserved-concurrency", "0", from1},
		"Email":       {"an address has an at", "alarm-email", "ops", `give an address such as operators@example.com`},
		"WebACL":      {"an ACL is named by its ARN", "web-acl", "mine", `give rate, or the ARN of a regional web ACL of WAF v2`},
		"OneOfAll": {"one platform cannot have more than all", "platform-rate", "51",
			`give no more than throttle-rate, which is 50 for all`},
		"Rotation":  {"KMS has bounds", "key-rotation-days", "2561", `give at most 2560`},
		"Rotations": {"on both sides", "key-rotation-days", "30", `give a whole number from 90`},
	} {
		want := fmt.Sprintf("context %s is %q: %s", test.name, fmt.Sprint(test.value), test.remedy)
		expect.Same(t, name+": "+test.reason, want, fmt.Sprint(expect.Err(settingsOf(map[string]any{test.name: test.value}))))
	}
}

// Values that are wrong by others, or that other packages read. Several errors are told at once, each on its line.
func TestEveryBadSettingIsNamed(t *testing.T) {
	const (
		aKey = "arn:aws:kms:eu-central-1:111122223333:key/k"
		cut  = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:s" // which lacks its end
	)
	for name, test := range map[string]struct {
		reason  string
		context map[string]any
		want    []string // the lines, in any order
	}{
		"Delay": {"a number says no unit", map[string]any{"demo-delay": "3"},
			[]string{`context demo-delay: LONGSHORE_DEMO_DELAY "3" is not a duration from 0s to 24h: give one such as 3s`}},
		"DelayBefore": {"time does not go back", map[string]any{"demo-delay": "-1s"},
			[]string{`context demo-delay: LONGSHORE_DEMO_DELAY "-1s" is not a duration from 0s to 24h: give one such as 3s`}},
		"RetryShort": {"Retry-After counts seconds", map[string]any{"min-retry-after": "10ms"},
			[]string{`context min-retry-after and max-retry-after: LONGSHORE_MIN_RETRY_AFTER "10ms" ` +
				`is not a duration from 1s to 1h: give one such as 3s`}},
		"RetryOrder": {"the least is not the most", map[string]any{"min-retry-after": "10s", "max-retry-after": "5s"},
			[]string{`context min-retry-after and max-retry-after: LONGSHORE_MIN_RETRY_AFTER 10s ` +
				`is more than LONGSHORE_MAX_RETRY_AFTER, which is 5s: give the smaller one here`}},
		"DryRun": {"it is or it is not", map[string]any{"reaper-dry-run": "maybe"},
			[]string{`context reaper-dry-run: LONGSHORE_REAPER_DRY_RUN "maybe" is neither true nor false: ` +
				`give one of them, or leave it out`}},
		"TableAlone": {"records are of no use without their key", map[string]any{"table": "Longshore-StateTable"},
			[]string{`context table and key: give both, of a stack that was removed, or neither`}},
		"Table": {"a table is named", map[string]any{"table": "a b", "key": aKey},
			[]string{`context table is "a b": give the name of a table`}},
		"SecretAlone": {"a secret is of no use without what it opens", map[string]any{"secret": cut + "-AbC123"},
			[]string{`context secret: give table and key of the same stack too`}},
		"Secret": {"a secret has a whole ARN", map[string]any{"table": "abc", "key": aKey, "secret": cut},
			[]string{`context secret is "` + cut + `": give the whole ARN of a secret of Secrets Manager`}},
		"Key": {"a key has an ARN", map[string]any{"table": "abc", "key": "alias/x"},
			[]string{`context key is "alias/x": give the ARN of a key of KMS`}},
		"BothTold": {"two ways to be told are one too many",
			map[string]any{"alarm-email": "o@example.com", "alarm-topic": "arn:aws:sns:eu-central-1:111122223333:t"},
			[]string{`context alarm-topic and alarm-email: give one of them; a topic can write to several addresses`}},
		"CIDR": {"blocks are written whole", map[string]any{"allow-cidrs": "192.0.2.1/24,192.0.2.1"}, []string{
			`context allow-cidrs is "192.0.2.1/24": give blocks of addresses such as 192.0.2.0/24, with commas between them`,
			`context allow-cidrs is "192.0.2.1": give blocks of addresses such as 192.0.2.0/24, with commas between them`,
		}},
		"Comma": {"what stands before a last comma is not all", map[string]any{"demo": "true", "demo-vpc": "true",
			"subnets": "subnet-0123456789abcdef0", "security-groups": "sg-0123456789abcdef0,"}, []string{
			`context security-groups is "sg-0123456789abcdef0,": ` +
				`give values with one comma between two of them, and none at either end`,
		}},
		"Commas": {"nor is what two commas part", map[string]any{"allow-cidrs": "192.0.2.0/24, ,2001:db8::/32"}, []string{
			`context allow-cidrs is "192.0.2.0/24, ,2001:db8::/32": ` +
				`give values with one comma between two of them, and none at either end`,
		}},
		"WebACLAll": {"an ACL without a bound is none", map[string]any{"web-acl": "rate", "platform-rate": "0"},
			[]string{`context web-acl is "rate": give platform-rate too: it is what the ACL holds platforms to`}},
		"Domain": {"a domain is a name", map[string]any{"domain": "https://x", "certificate": "c"}, []string{
			`context domain is "https://x": give a name such as broker.example.com, in lower-case letters`,
			`context certificate is "c": give the ARN of a certificate of ACM, in the stack's region`,
		}},
		"NoCertificate": {"a domain needs one", map[string]any{"domain": "b.example.com"},
			[]string{`context domain and certificate: give both, or neither, and hosted-zone only with them`}},
		"ZoneAlone": {"a record needs a name", map[string]any{"hosted-zone": "Z1"},
			[]string{`context domain and certificate: give both, or neither, and hosted-zone only with them`}},
		"Mapped": {"a domain maps one part", map[string]any{"domain": "b.example.com", "base-path": "/a/b",
			"certificate": "arn:aws:acm:eu-central-1:111122223333:certificate/c"},
			[]string{`context base-path is "/a/b": give with domain, a path of one part such as /broker`}},
		"Several": {"nobody wants to be told one by one", map[string]any{
			"stack": "-", "architecture": "", "demo-delay": "x", "log-days": "2", "throttle-rate": "x", "throttle-burst": "x",
			"cli-credentials": "", "reaper-concurrency": "x",
		}, []string{
			`context stack is "-": give a name of up to 64 letters, digits and hyphens that begins with a letter`,
			`context architecture is "": give arm64 or x86_64`,
			`context demo-delay: LONGSHORE_DEMO_DELAY "x" is not a duration from 0s to 24h: give one such as 3s`,
			`context log-days is "2": give one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365`,
			`context throttle-rate is "x": give a whole number from 1`,
			`context throttle-burst is "x": give a whole number from 1`,
			`context cli-credentials is "": give true or false`,
			`context reaper-concurrency is "x": give a whole number from 0`,
		}},
	} {
		said := slices.Sorted(strings.SplitSeq(fmt.Sprint(expect.Err(settingsOf(test.context))), "\n"))
		expect.Same(t, name+": "+test.reason, slices.Sorted(slices.Values(test.want)), said)
	}
}
