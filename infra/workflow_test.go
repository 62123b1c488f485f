package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// The stack deploys the whole definition, for the deployed provisioner, with limits that hold.
// Package stepfunctions tests what the definition does.
func TestTheStateMachineIsTheWorkflows(t *testing.T) {
	made := must(t, usual)
	machine := made.one(t, "AWS::StepFunctions::StateMachine", "")
	want := stepfunctions.Definition("<ProvisionerFunction.Arn>", stepLimit, executionLimit)
	if d := cmp.Diff(want, plain(machine["DefinitionString"])); d != "" {
		t.Errorf("definition (-want +got):\n%s", d)
	}
	if machine["StateMachineType"] != "STANDARD" {
		t.Errorf("it is %v: only a standard one remembers the names of executions", machine["StateMachineType"])
	}
	if role := plain(machine["RoleArn"]); role != "<WorkflowRole.Arn>" {
		t.Errorf("it acts as %s", role)
	}
	// A week is what stays within an execution's history.
	if executionLimit > 7*24*time.Hour {
		t.Errorf("an execution may take %v", executionLimit)
	}
}

func TestNothingOfAnExecutionIsLogged(t *testing.T) {
	for name, variant := range variants {
		machine := must(t, variant).one(t, "AWS::StepFunctions::StateMachine", "")
		for member := range machine {
			if !slices.Contains([]string{"DefinitionString", "RoleArn", "StateMachineType", "TracingConfiguration"}, member) {
				t.Errorf("%s: the state machine has %s: %s", name, member, plain(machine[member]))
			}
			if traced := at(machine, "TracingConfiguration", "Enabled") == true; traced != (name == "Chosen") {
				t.Errorf("%s: it is traced: %v", name, traced)
			}
		}
	}
}
