package main

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// The stack deploys the whole definition, for the deployed provisioner, with limits that hold.
// Package stepfunctions tests what the definition does.
func TestTheStateMachineIsTheWorkflows(t *testing.T) {
	made := must(t, usual)
	machine := made.one(t, "AWS::StepFunctions::StateMachine", "")
	want := stepfunctions.Definition("<ProvisionerFunction.Arn>", stepLimit, executionLimit)
	expect.Same(t, "definition", want, plain(machine["DefinitionString"]))
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
		}
	}
}
