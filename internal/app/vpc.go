package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/wired"
	calls "github.com/longshore/longshore/internal/provider/remote"
)

// CallsTimeout is when a call inside a VPC is certainly dead: after the longest call
// that a step makes, and before the lease of that step ends.
const CallsTimeout = ProvisionerTimeout - 10*time.Second

// insideVPC names the providers that are called inside a VPC.
func insideVPC(getenv func(string) string) ([]string, error) {
	if getenv(EnvInVPC) == "" {
		return nil, nil
	}
	names, all := strings.Split(getenv(EnvInVPC), ","), rows()
	for _, name := range names {
		if all[name].inside == nil {
			return nil, advice.For(EnvInVPC, fmt.Sprintf("names %q, which no function inside a VPC can call", name),
				"deploy all functions of one version")
		}
	}
	return names, nil
}

// throughVPC replaces the providers that are called inside a VPC with calls of the
// function there.
func (d Deployed) throughVPC(providers map[string]wired.Provider) (map[string]wired.Provider, error) {
	names, err := insideVPC(d.Getenv)
	if names == nil || err != nil {
		return providers, err
	}
	set, err := d.required(EnvCalls)
	if err != nil {
		return nil, err
	}
	all := rows()
	for _, name := range names {
		o := calls.Options{Provider: name, Function: set[EnvCalls], Outside: providers[name]}
		if reach := all[name].reach; reach != nil {
			if o.Reach, err = reach(d); err != nil {
				return nil, err
			}
		}
		providers[name] = calls.New(d.Invoker, o)
	}
	return providers, nil
}

// Calls is the handler of functions/provisioner inside a VPC. It has no rights, reads
// no records, and makes the calls of providers that the functions outside ask for.
func (d Deployed) Calls(context.Context) (*calls.Handler, error) {
	if _, err := d.required(EnvInVPC); err != nil {
		return nil, err
	}
	names, err := insideVPC(d.Getenv)
	if err != nil {
		return nil, err
	}
	served, all := map[string]calls.Open{}, rows()
	for _, name := range names {
		served[name] = all[name].inside(d)
	}
	return calls.NewHandler(served, d.Log), nil
}

// ProvisionerOrCalls is the handler of functions/provisioner in the role that it
// is deployed in.
func (d Deployed) ProvisionerOrCalls(ctx context.Context) (any, error) {
	if d.Getenv(EnvRole) == RoleCalls {
		return d.Calls(ctx)
	}
	return d.Provisioner(ctx)
}
