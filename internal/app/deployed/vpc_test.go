package deployed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/deployed/provisioner"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/test/emulator"
)

// The same functions, with the demo's calls made by the one inside a VPC, which the
// others record.
func TestFunctionsTogetherThroughAVPC(t *testing.T) {
	f := newTogether(t, emulator.Config(t), map[string]string{app.EnvInVPC: "demo", app.EnvCalls: callsARN})
	f.live()
	if f.here.called < 4 {
		t.Errorf("the function inside was called %d times", f.here.called)
	}
}

// The longest call that a step may make ends before the function inside does, and
// that before a lease that a step takes is over.
func TestCallsEndBeforeTheirLease(t *testing.T) {
	longest := map[string]wired.Provider{"longest": {Provider: demo.New(0, time.Now), CallTimeout: app.CallsTimeout}}
	if wired.Check(longest, app.ProvisionerTimeout) == nil {
		t.Error("a step may make a call that the function inside does not outlive")
	}
	if app.CallsTimeout >= app.ProvisionerTimeout {
		t.Error("the function inside lives longer than whoever called it")
	}
}

// In its usual role the provisioner serves steps, inside a VPC calls alone.
func TestProvisionerOrCalls(t *testing.T) {
	p := deployed.Parts{Log: quiet(), Getenv: func(name string) string {
		return map[string]string{app.EnvInVPC: "demo", app.EnvProviders: "demo", app.EnvTable: "t", app.EnvKey: "k"}[name]
	}}
	if _, err := provisioner.New(context.Background(), p); err == nil || !strings.Contains(err.Error(), app.EnvCalls) {
		t.Errorf("a provisioner that does not know the function inside starts: %v", err)
	}
}
