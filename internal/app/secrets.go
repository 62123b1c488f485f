package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	calls "github.com/longshore/longshore/internal/provider/remote"
)

// secretKept is how long a secret is used before it is read again. After a fault it is
// read again sooner (forget).
const secretKept = 5 * time.Minute

// Secrets are the secrets of a provider's servers on AWS: ARNs by the names of targets.
type Secrets map[string]string

// SecretARN is what the ARNs of secrets look like. Secrets Manager puts a hyphen and six
// characters after the name.
var SecretARN = regexp.MustCompile(`^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$`)

// ParseSecrets reads name=ARN with commas between them; an ARN alone belongs to the
// default target.
func ParseSecrets(setting, text string) (Secrets, error) {
	all := Secrets{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		name, arn, named := strings.Cut(part, "=")
		if strings.HasPrefix(part, "arn:") { // which may have an equals sign of its own
			name, arn, named = hosted.DefaultTarget, part, true
		}
		switch {
		case !named || !hosted.TargetName.MatchString(name):
			return nil, advice.For(setting, fmt.Sprintf("has %q", part),
				"give name=ARN with commas between them, names of lower-case letters, digits and hyphens")
		case !SecretARN.MatchString(arn):
			return nil, advice.For(setting, fmt.Sprintf("has %q", arn), "give the whole ARN of a secret of Secrets Manager")
		case all[name] != "":
			return nil, advice.For(setting, fmt.Sprintf("names %q twice", name), "give each target a name of its own")
		}
		all[name] = arn
	}
	return all, nil
}

// String is what ParseSecrets reads.
func (s Secrets) String() string {
	var parts []string
	for _, name := range s.Names() {
		parts = append(parts, name+"="+s[name])
	}
	return strings.Join(parts, ",")
}

// Names are the targets', in order.
func (s Secrets) Names() []string { return slices.Sorted(maps.Keys(s)) }

// envSecrets is the variable that tells the functions where the secrets of the servers
// are.
func (h hostedRow) envSecrets() string { return "LONGSHORE_" + strings.ToUpper(h.name) + "_SECRETS" }

// secretsIn are those that a stack was deployed with; nil for none.
func (h hostedRow) secretsIn(getenv func(string) string) (Secrets, error) {
	text := getenv(h.envSecrets())
	if text == "" {
		return nil, nil
	}
	return ParseSecrets(h.envSecrets(), text)
}

// deployed is the provider in a function outside the VPC: that never calls it itself,
// and only passes on what is needed to reach the servers.
func (h hostedRow) deployed(d Deployed) (provider.Wired, error) {
	all, err := h.secretsIn(d.Getenv)
	if err != nil {
		return provider.Wired{}, err
	}
	if all == nil || !slices.Contains(strings.Split(d.Getenv(EnvInVPC), ","), h.name) {
		return provider.Wired{}, advice.For(h.envSecrets(), "is not set, or the provider is called outside of a VPC",
			"deploy the function with its infrastructure, which sets it")
	}
	w := wiredOf(h.open(hostedOptions{Broker: d.Getenv(EnvBroker), Now: now, Log: d.Log}))
	w.Targets = func(context.Context) ([]string, error) { return all.Names(), nil }
	return w, nil
}

// inside opens the provider for one call, in the function inside the VPC: its
// connections end with the call.
func (h hostedRow) inside(d Deployed) (calls.Open, error) {
	return func(reach json.RawMessage) (provider.Wired, error) {
		var accesses hosted.Accesses
		if json.Unmarshal(reach, &accesses) != nil {
			return provider.Wired{}, advice.For("what reaches the servers", "cannot be read", "deploy all functions of one version")
		}
		made := h.open(hostedOptions{Broker: d.Getenv(EnvBroker), Accesses: accesses, Now: now, Log: d.Log})
		return wiredOf(made), nil
	}, nil
}

// reach looks up how servers are reached, by their secrets.
func (h hostedRow) reach(d Deployed) (calls.Reach, error) {
	all, err := h.secretsIn(d.Getenv)
	if err != nil {
		return calls.Reach{}, err
	}
	s := &secrets{row: h, arns: all, client: secretsmanager.NewFromConfig(d.Config), now: now, kept: map[string]keptAccess{}}
	return calls.Reach{LookUp: s.lookUp, Forget: s.forget}, nil
}

// secrets reads the secrets of a provider's servers, and keeps them for a while.
type secrets struct {
	row    hostedRow
	arns   Secrets
	client *secretsmanager.Client
	now    func() time.Time

	mu   sync.Mutex
	kept map[string]keptAccess
}

type keptAccess struct {
	access hosted.Access
	until  time.Time
}

// lookUp gives what is needed to reach the targets. A target without a name is the one
// that the plan says, which only the provider knows: it then gets all secrets.
func (s *secrets) lookUp(ctx context.Context, targets []provider.Target) (json.RawMessage, error) {
	names := s.arns.Names()
	if !slices.ContainsFunc(targets, func(t provider.Target) bool { return t.Name == "" }) && len(targets) > 0 {
		names = nil
		for _, t := range targets {
			names = append(names, t.Name)
		}
	}
	accesses := hosted.Accesses{}
	for _, name := range names {
		if s.arns[name] == "" {
			continue // the provider says that it is not in today's settings
		}
		a, err := s.access(ctx, name)
		if err != nil {
			return nil, err
		}
		accesses[name] = a
	}
	return json.Marshal(accesses)
}

func (s *secrets) access(ctx context.Context, name string) (hosted.Access, error) {
	s.mu.Lock()
	kept, at := s.kept[name], s.now()
	s.mu.Unlock()
	if at.Before(kept.until) {
		return kept.access, nil
	}
	arn := s.arns[name]
	out, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
	if err != nil {
		return hosted.Access{}, fmt.Errorf("reading the secret of target %q: %w", name, err)
	}
	setting := fmt.Sprintf("the secret of target %q of %s", name, s.row.name)
	a, err := hosted.ParseSecret(setting, []byte(aws.ToString(out.SecretString)), s.row.engine)
	if err != nil {
		return hosted.Access{}, err
	}
	s.mu.Lock()
	s.kept[name] = keptAccess{a, at.Add(secretKept)}
	s.mu.Unlock()
	return a, nil
}

// forget has all secrets read again: a call met a fault, perhaps because a password was
// rotated.
func (s *secrets) forget() {
	s.mu.Lock()
	clear(s.kept)
	s.mu.Unlock()
}
