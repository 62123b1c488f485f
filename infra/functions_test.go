package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

// functions are the properties of each function, by its name.
func functions(t *testing.T, made template) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{
		FunctionAPI:         made.one(t, "AWS::Lambda::Function", "ApiFunction"),
		FunctionProvisioner: made.one(t, "AWS::Lambda::Function", "ProvisionerFunction"),
		FunctionReaper:      made.one(t, "AWS::Lambda::Function", "ReaperFunction"),
	}
	if ids := made.of("AWS::Lambda::Function"); len(ids) != len(out) {
		t.Errorf("functions %q, want %d", ids, len(out))
	}
	return out
}

func TestFunctionsAreMadeInOneWay(t *testing.T) {
	tests := map[string]struct {
		reason       string
		variant      func() (template, error)
		architecture string
		logDays      float64
	}{
		"Usual":  {"ARM costs less", usual, "arm64", 30},
		"Chosen": {"emulators run what their machine runs", chosen, "x86_64", 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			made := must(t, test.variant)
			for function, p := range functions(t, made) {
				id := strings.ToUpper(function[:1]) + function[1:] + "Function"
				got := map[string]any{
					"Architectures": plain(p["Architectures"]), "Handler": p["Handler"], "Role": plain(p["Role"]),
					"Runtime": p["Runtime"], "LoggingConfig": plain(at(p, "LoggingConfig", "LogFormat")) + " to " +
						plain(at(p, "LoggingConfig", "LogGroup")),
				}
				expect.Same(t, fmt.Sprintf("%s: function %q", test.reason, function), map[string]any{
					"Architectures": test.architecture, "Handler": "bootstrap", "Role": "<" + id + "Role.Arn>",
					"Runtime": "provided.al2023", "LoggingConfig": "JSON to <" + id + "Log>",
				}, got)
				// Nothing else is there that a function could keep or be reached by.
				for _, name := range []string{"VpcConfig", "Layers", "FileSystemConfigs", "FunctionName"} {
					if p[name] != nil {
						t.Errorf("function %q has %s: %s", function, name, plain(p[name]))
					}
				}
			}
			for function, p := range functions(t, made) {
				// A failed call that nobody waits for becomes a dead letter.
				if dead := plain(at(p, "DeadLetterConfig",
					"TargetArn")); (dead == "<DeadLettersQueue.Arn>") != (function == FunctionReaper) {
					t.Errorf("function %q has dead letters %q", function, dead)
				}
				if mode := plain(at(p, "TracingConfig", "Mode")); (mode == "Active") != (name == "Chosen") {
					t.Errorf("function %q is traced: %q", function, mode)
				}
			}
			logs := made.of("AWS::Logs::LogGroup")
			if len(logs) != len(functionNames) {
				t.Errorf("logs %q, want one for each function", logs)
			}
			for _, id := range logs {
				if r := made.Resources[id]; r.Properties["RetentionInDays"] != test.logDays || r.DeletionPolicy != "Delete" ||
					r.UpdateReplacePolicy != "Delete" {
					t.Errorf("log %q: %v days, %s, %s", id, r.Properties["RetentionInDays"], r.DeletionPolicy,
						r.UpdateReplacePolicy)
				}
			}
		})
	}
}

// NFR-01: the API ends before the gateway gives up.
func TestTimeAndMemory(t *testing.T) {
	tests := map[string]struct {
		reason       string
		seconds, mem float64
	}{
		FunctionAPI:         {"the platform waits for it", app.APITimeout.Seconds(), 512},
		FunctionProvisioner: {"it mostly waits for AWS", app.ProvisionerTimeout.Seconds(), 256},
		FunctionReaper:      {"nobody waits for it", app.ReaperTimeout.Seconds(), 256},
	}
	all := functions(t, must(t, usual))
	for name, test := range tests {
		if p := all[name]; p["Timeout"] != test.seconds || p["MemorySize"] != test.mem {
			t.Errorf("function %q: %v s, %v MB, want %v s, %v MB: %s", name, p["Timeout"], p["MemorySize"], test.seconds,
				test.mem, test.reason)
		}
	}
	if gateway := 29.0; all[FunctionAPI]["Timeout"].(float64) >= gateway {
		t.Errorf("the API takes %v s, but the gateway answers after %v s in its place", all[FunctionAPI]["Timeout"], gateway)
	}
	if step := stepLimit.Seconds(); all[FunctionProvisioner]["Timeout"].(float64) >= step {
		t.Errorf("a step takes %v s, but the state machine gives it up after %v s", all[FunctionProvisioner]["Timeout"], step)
	}
}

// A new account has so little concurrency that nothing can be reserved.
func TestConcurrencyIsReservedOnlyWhereItIsChosen(t *testing.T) {
	want := map[string]map[string]any{
		"Usual":  {FunctionAPI: nil, FunctionProvisioner: nil, FunctionReaper: nil},
		"Chosen": {FunctionAPI: 20.0, FunctionProvisioner: nil, FunctionReaper: 1.0},
	}
	for name, variant := range variants {
		got := map[string]any{}
		for function, p := range functions(t, must(t, variant)) {
			got[function] = p["ReservedConcurrentExecutions"]
		}
		expect.Same(t, name, want[name], got)
	}
}

// Everyone who may look at a function can read its environment: the variables say where things
// are, and none of them is secret.
func TestEnvironment(t *testing.T) {
	const account, key, table, machine = "<AWS::AccountId>", "<StateKey.Arn>", "<StateTable>", "<WorkflowStateMachine>"
	const identity = stackIdentity
	tests := map[string]struct {
		reason   string
		variant  func() (template, error)
		function string
		want     map[string]string
	}{
		"API": {"it records, and has the provisioner driven or calls it", usual, FunctionAPI, map[string]string{
			envAccount: account, app.EnvStack: "Longshore", app.EnvBroker: identity, app.EnvKey: key, app.EnvTable: table,
			app.EnvSecret:       "<SecretsPlatform.Id>",
			app.EnvStateMachine: machine, app.EnvProvisioner: "<ProvisionerFunction.Arn>", app.EnvPlatformRate: "25",
		}},
		"Provisioner": {"the demo's delay is its own unless it is chosen", usual, FunctionProvisioner, map[string]string{
			envAccount: account, app.EnvStack: "Longshore", app.EnvBroker: identity, app.EnvKey: key, app.EnvTable: table,
			app.EnvProviders: "demo",
		}},
		"Reaper": {"it only has things driven", usual, FunctionReaper, map[string]string{
			envAccount: account, app.EnvStack: "Longshore", app.EnvBroker: identity, app.EnvTable: table,
			app.EnvStateMachine: machine, app.EnvProviders: "demo",
		}},
		"ChosenAPI": {"when clients ask again is chosen", chosen, FunctionAPI, map[string]string{
			envAccount: account, app.EnvStack: "Other", app.EnvBroker: identity, app.EnvKey: key, app.EnvTable: table,
			app.EnvSecret:       "<SecretsPlatform.Id>",
			app.EnvStateMachine: machine, app.EnvProvisioner: "<ProvisionerFunction.Arn>",
			app.EnvMinRetryAfter: "2s", app.EnvMaxRetryAfter: "20s", app.EnvPlatformRate: "4",
		}},
		"ChosenProvisioner": {"two stacks never share things", chosen, FunctionProvisioner, map[string]string{
			envAccount: account, app.EnvStack: "Other", app.EnvBroker: identity, app.EnvKey: key, app.EnvTable: table,
			app.EnvProviders: "demo", app.EnvDemoDelay: "250ms",
		}},
		"ChosenReaper": {"it may be told to report only", chosen, FunctionReaper, map[string]string{
			envAccount: account, app.EnvStack: "Other", app.EnvBroker: identity, app.EnvTable: table,
			app.EnvStateMachine: machine, app.EnvProviders: "demo", app.EnvDemoDelay: "250ms", app.EnvReaperDryRun: "true",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for variable, value := range asMap(at(functions(t, must(t, test.variant))[test.function], "Environment",
				"Variables")) {
				got[variable] = plain(value)
			}
			expect.Same(t, test.reason, test.want, got)
		})
	}
}

func TestCheckCode(t *testing.T) {
	const arm, intel = byte(elf.EM_AARCH64), byte(elf.EM_X86_64)
	all := func(machine byte) map[string]byte {
		return map[string]byte{FunctionAPI: machine, FunctionProvisioner: machine, FunctionReaper: machine}
	}
	but := func(programs map[string]byte, name string, machine byte) map[string]byte {
		programs = maps.Clone(programs)
		if programs[name] = machine; machine == 0 {
			delete(programs, name)
		}
		return programs
	}
	tests := map[string]struct {
		reason       string
		programs     map[string]byte
		architecture string
		want         []string // what the error names; nil for none
		missing      bool
	}{
		"ARM":   {"what was built for ARM runs there", all(arm), ARM64, nil, false},
		"Intel": {"and what was built for Intel", all(intel), X8664, nil, false},
		"Nothing": {"all that are missing are named", nil, ARM64,
			[]string{`"api"`, `"provisioner"`, `"reaper"`, "make functions ARCHITECTURE=arm64"}, true},
		"One": {
			"one is enough to be refused, and the others are not blamed", but(all(intel), FunctionReaper, 0), X8664,
			[]string{`"reaper"`, "make functions ARCHITECTURE=x86_64"}, true,
		},
		"Other": {
			"all that were built for another architecture are named", all(intel), ARM64,
			[]string{`"api"`, `"provisioner"`, `"reaper"`, "EM_X86_64", "make functions ARCHITECTURE=arm64"}, false,
		},
		"OtherWay": {"and the other way round", all(arm), X8664,
			[]string{`"api"`, `"provisioner"`, `"reaper"`, "EM_AARCH64", "make functions ARCHITECTURE=x86_64"}, false},
		"NotLinux": {"a program for another system is no program", but(all(arm), FunctionAPI, notELF), ARM64,
			[]string{`"api"`, "make functions ARCHITECTURE=arm64"}, false},
		"MixedUp": {"a half-finished build is found", but(all(arm), FunctionProvisioner, intel), ARM64,
			[]string{`"provisioner"`, "EM_X86_64", "make functions ARCHITECTURE=arm64"}, false},
		"TwoFaults": {"both are said at once", but(but(all(arm), FunctionProvisioner, intel), FunctionAPI, 0), ARM64,
			[]string{`"api"`, `"provisioner"`, "make functions"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code := t.TempDir()
			for function, machine := range test.programs {
				expect.OK(t, writeProgram(filepath.Join(code, function), machine))
			}
			err := CheckCode(code, test.architecture)
			if test.want == nil {
				if err != nil {
					t.Errorf("%s: %v", test.reason, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("%s: there is no error", test.reason)
			}
			expect.Says(t, test.reason, err.Error(), test.want...)
			for _, function := range functionNames {
				if named := `"` + function + `"`; !slices.Contains(test.want, named) && strings.Contains(err.Error(), named) {
					t.Errorf("%s: %s is blamed:\n%v", test.reason, named, err)
				}
			}
			if got := errors.Is(err, fs.ErrNotExist); got != test.missing {
				t.Errorf("%s: the error says that a file is missing: %v, want %v:\n%v", test.reason, got, test.missing, err)
			}
		})
	}
}
