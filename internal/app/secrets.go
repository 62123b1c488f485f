package app

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/hosted/secrets"
	calls "github.com/longshore/longshore/internal/provider/remote"
)

// envSecrets is the variable that tells the functions where the secrets of the servers
// are.
func (h hostedRow) envSecrets() string { return "LONGSHORE_" + strings.ToUpper(h.name) + "_SECRETS" }

// secretsIn are those that a stack was deployed with; nil for none.
func (h hostedRow) secretsIn(getenv func(string) string) (secrets.ARNs, error) {
	text := getenv(h.envSecrets())
	if text == "" {
		return nil, nil
	}
	return secrets.Parse(h.envSecrets(), text)
}

// deployed is the provider in a function outside the VPC: that never calls it itself,
// and only passes on what is needed to reach the servers.
func (h hostedRow) deployed(d Deployed) (wired.Provider, error) {
	all, err := h.secretsIn(d.Getenv)
	if err != nil {
		return wired.Provider{}, err
	}
	if all == nil || !slices.Contains(strings.Split(d.Getenv(EnvInVPC), ","), h.name) {
		return wired.Provider{}, advice.For(h.envSecrets(), "is not set, or the provider is called outside of a VPC",
			"deploy the function with its infrastructure, which sets it")
	}
	w := h.open(hostedOptions{Broker: d.Getenv(EnvBroker), Now: now, Log: d.Log})
	w.Targets = func(context.Context) ([]string, error) { return all.Names(), nil }
	return w, nil
}

// inside opens the provider for one call, in the function inside the VPC: its
// connections end with the call.
func (h hostedRow) inside(d Deployed) calls.Open {
	return func(reach json.RawMessage) (wired.Provider, error) {
		var accesses hosted.Accesses
		if json.Unmarshal(reach, &accesses) != nil {
			return wired.Provider{}, advice.For("what reaches the servers", "cannot be read", "deploy all functions of one version")
		}
		return h.open(hostedOptions{Broker: d.Getenv(EnvBroker), Accesses: accesses, Now: now, Log: d.Log}), nil
	}
}

// reach looks up how servers are reached, by their secrets.
func (h hostedRow) reach(d Deployed) (calls.Reach, error) {
	all, err := h.secretsIn(d.Getenv)
	if err != nil {
		return calls.Reach{}, err
	}
	reader := secrets.NewReader(h.name, h.engine, all, secretsmanager.NewFromConfig(d.Config), now)
	return calls.Reach{LookUp: reader.LookUp, Forget: reader.Forget}, nil
}
