package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/hosted/secrets"
)

// Servers are the shared servers of a provider.
type Servers struct {
	// Secrets are the secrets of the servers, by target, and Keys the ARNs of the keys with which
	// these are encrypted; no keys if they are AWS's own.
	Secrets secrets.ARNs
	Keys    []string
}

// hostedContexts returns the names of the context values of a provider on shared servers.
func hostedContexts(name string) (one, several, keys string) {
	return name + "-secret", name + "-secrets", name + "-secret-key"
}

// withHosted adds the rows of the providers on shared servers.
func withHosted(rows map[string]providerRow) map[string]providerRow {
	for _, name := range slices.Sorted(maps.Keys(providers.Servers())) {
		// The calls to servers are made inside the VPC, from where nothing of AWS can be reached. So
		// the functions that ask for these calls read the secrets, and they also list through them.
		secrets := func(stack awscdk.Stack, s Settings) Grants { return reading(stack, name, s.Servers[name]) }
		rows[name] = providerRow{
			environment: func(s Settings, inside bool) map[string]string {
				if inside {
					return nil // its callers read the secrets
				}
				return map[string]string{providers.Servers()[name].EnvSecrets(): s.Servers[name].Secrets.String()}
			},
			things: secrets, inventory: secrets,
			read:    func(s *Settings, r *reader, state string) { s.readServers(r, name, state) },
			targets: true, vpc: true,
		}
	}
	return rows
}

// readServers reads the settings of a provider's servers.
func (s *Settings) readServers(r *reader, name, state string) {
	one, several, keys := hostedContexts(name)
	context, text := one, r.text(one, "")
	if all := r.text(several, ""); all != "" {
		if text != "" {
			r.wrong("context %s and %s: give one of them", one, several)
		}
		context, text = several, all
	}
	given := Servers{Keys: r.list(keys)}
	for _, key := range given.Keys {
		r.match(keys, key, keyARN, "ARNs of keys of KMS, with commas between them")
	}
	switch {
	case text == "" && state != Off:
		r.wrong("context %s: give the ARN of the secret that says how the server is reached, "+
			"or %s=NAME=ARN,NAME=ARN for several", one, several)
	case (text != "" || given.Keys != nil) && state == Off:
		r.wrong("context %s: give %s=%s too: the stack has no such provider", context,
			name, Offered)
	case text != "":
		var err error
		if given.Secrets, err = secrets.Parse("context "+context, text); err != nil {
			r.problems = append(r.problems, err)
			return
		}
		if s.Servers == nil {
			s.Servers = map[string]Servers{}
		}
		s.Servers[name] = given
	}
}

// reading returns the rights to read the secrets of servers, and to use their keys through Secrets Manager only.
func reading(stack awscdk.Stack, name string, servers Servers) (all Grants) {
	for i, arn := range slices.Sorted(maps.Values(servers.Secrets)) {
		all = append(all, allow(fmt.Sprintf("Server%s%d", outputs.Title(name), i), &arn, "secretsmanager:GetSecretValue")...)
	}
	for i, key := range servers.Keys {
		opening := allow(fmt.Sprintf("ServerKey%s%d", outputs.Title(name), i), &key, "kms:Decrypt")
		all = append(all, opening.when("StringEquals", map[string]any{
			"kms:ViaService":                  service(stack, "secretsmanager"),
			"kms:EncryptionContext:SecretARN": slices.Sorted(maps.Values(servers.Secrets)),
		})...)
	}
	return all
}

// checkTargets refuses a plan whose server the stack does not have: orders of that plan would wait for ever.
func (s Settings) checkTargets(offerings []catalog.Offering) error {
	var problems []error
	for _, o := range offerings {
		servers, has := s.Servers[o.Provider]
		for _, p := range o.Plans {
			if target := hosted.TargetOf(p.Settings); has && servers.Secrets[target] == "" {
				_, several, _ := hostedContexts(o.Provider)
				problems = append(problems, fmt.Errorf(
					"plan %s of offering %s is of target %q: name it in -c %s=, or another one in the plan's settings", p.Name,
					o.Name, target, several))
			}
		}
	}
	return errors.Join(problems...)
}
