package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
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

// variables is a function's environment, from its properties.
func variables(function map[string]any) map[string]string {
	out := map[string]string{}
	for name, value := range asMap(at(function, "Environment", "Variables")) {
		out[name] = plain(value)
	}
	return out
}

// NFR-01: the API ends before the gateway gives up.
func TestTimeAndMemory(t *testing.T) {
	all := functions(t, must(t, usual))
	if gateway := 29.0; all[FunctionAPI]["Timeout"].(float64) >= gateway {
		t.Errorf("the API takes %v s, but the gateway answers after %v s in its place", all[FunctionAPI]["Timeout"], gateway)
	}
	if limit := app.ReaperTimeout.Minutes(); limit > 1 {
		t.Errorf("a sweep may take %v minutes, longer than until the next", limit)
	}
	if step := stepLimit.Seconds(); all[FunctionProvisioner]["Timeout"].(float64) >= step {
		t.Errorf("a step takes %v s, but the state machine gives it up after %v s", all[FunctionProvisioner]["Timeout"], step)
	}
}

// Everyone who may look at a function can read its environment: the variables say where things are, and none of them is secret.
func TestEnvironment(t *testing.T) {
	const key, machine, steps = "<StateKey.Arn>", "<WorkflowStateMachine>", "<ProvisionerFunction.Arn>"
	for variant, stack := range map[string]string{"Usual": "Longshore", "Chosen": "Other"} {
		all := functions(t, must(t, variants[variant]))
		for function, want := range map[string]map[string]string{
			// It records, and has the provisioner driven or calls it.
			FunctionAPI: {app.EnvKey: key, app.EnvSecret: "<SecretsPlatform.Id>", app.EnvStateMachine: machine,
				app.EnvProvisioner: steps, app.EnvPlatformRate: "25"},
			FunctionProvisioner: {app.EnvKey: key, app.EnvProviders: "demo"},
			// It only has things driven.
			FunctionReaper: {app.EnvStateMachine: machine, app.EnvProviders: "demo"},
		} {
			maps.Copy(want, map[string]string{envAccount: "<AWS::AccountId>", app.EnvStack: stack, app.EnvBroker: stackIdentity,
				app.EnvTable: "<StateTable>"})
			if variant == "Chosen" {
				maps.Copy(want, map[string]map[string]string{
					FunctionAPI:         {app.EnvMinRetryAfter: "2s", app.EnvMaxRetryAfter: "20s", app.EnvPlatformRate: "4"},
					FunctionProvisioner: {app.EnvDemoDelay: "250ms"},
					FunctionReaper:      {app.EnvDemoDelay: "250ms", app.EnvReaperDryRun: "true"},
				}[function])
			}
			expect.Same(t, variant+" "+function, want, variables(all[function]))
		}
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
	for name, test := range map[string]struct {
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
		"One": {"one is enough to be refused, and the others are not blamed", but(all(intel), FunctionReaper, 0), X8664,
			[]string{`"reaper"`, "make functions ARCHITECTURE=x86_64"}, true},
		"Other": {"all that were built for another architecture are named", all(intel), ARM64,
			[]string{`"api"`, `"provisioner"`, `"reaper"`, "EM_X86_64", "make functions ARCHITECTURE=arm64"}, false},
		"OtherWay": {"and the other way round", all(arm), X8664,
			[]string{`"api"`, `"provisioner"`, `"reaper"`, "EM_AARCH64", "make functions ARCHITECTURE=x86_64"}, false},
		"NotLinux": {"a program for another system is no program", but(all(arm), FunctionAPI, notELF), ARM64,
			[]string{`"api"`, "make functions ARCHITECTURE=arm64"}, false},
		"MixedUp": {"a half-finished build is found", but(all(arm), FunctionProvisioner, intel), ARM64,
			[]string{`"provisioner"`, "EM_X86_64", "make functions ARCHITECTURE=arm64"}, false},
		"TwoFaults": {"both are said at once", but(but(all(arm), FunctionProvisioner, intel), FunctionAPI, 0), ARM64,
			[]string{`"api"`, `"provisioner"`, "make functions"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			code := t.TempDir()
			for function, machine := range test.programs {
				expect.OK(t, writeProgram(filepath.Join(code, function), machine))
			}
			err := CheckCode(code, test.architecture)
			if test.want == nil {
				expect.OK(t, err, test.reason)
				return
			}
			said := fmt.Sprint(err)
			expect.Says(t, test.reason, said, test.want...)
			for _, function := range functionNames {
				if named := `"` + function + `"`; !slices.Contains(test.want, named) {
					expect.Never(t, test.reason+": it is not to blame", said, named)
				}
			}
			expect.Same(t, said+": it says that a file is missing", test.missing, errors.Is(err, fs.ErrNotExist))
		})
	}
}
