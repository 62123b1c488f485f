// Package secrets finds how the servers of a provider are reached on AWS: through secrets of
// Secrets Manager, one for each target, in the form that RDS writes and rotates. It needs the right
// to read them. Package hosted parses their content.
package secrets

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
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// keptFor is how long a secret is used before it is read again; after Forget it is read at once.
const keptFor = 5 * time.Minute

// ARNs has the ARNs of the secrets of a provider's servers, by target.
type ARNs map[string]string

// ARN is the form of the ARNs of secrets. Secrets Manager appends a hyphen and six characters to
// the name.
var ARN = regexp.MustCompile(`^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$`)

// Parse parses a comma-separated list of name=ARN; an ARN alone belongs to the default target.
func Parse(setting, text string) (ARNs, error) {
	all := ARNs{}
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
		case !ARN.MatchString(arn):
			return nil, advice.For(setting, fmt.Sprintf("has %q", arn), "give the whole ARN of a secret of Secrets Manager")
		case all[name] != "":
			return nil, advice.For(setting, fmt.Sprintf("names %q twice", name), "give each target a name of its own")
		}
		all[name] = arn
	}
	return all, nil
}

// String returns the form that Parse reads.
func (s ARNs) String() string {
	var parts []string
	for name, arn := range sorted.Map(s) {
		parts = append(parts, name+"="+arn)
	}
	return strings.Join(parts, ",")
}

// Names returns the names of the targets, in order.
func (s ARNs) Names() []string { return slices.Sorted(maps.Keys(s)) }

// A Reader reads the secrets of a provider's servers, and keeps them for a while.
type Reader struct {
	name   string
	engine hosted.AddressForm
	arns   ARNs
	client *secretsmanager.Client
	now    func() time.Time

	kept sync.Map // a keptAccess by the target's name
}

type keptAccess struct {
	access hosted.Access
	until  time.Time
}

// NewReader makes a reader for the provider with that name.
func NewReader(name string, engine hosted.AddressForm, arns ARNs, client *secretsmanager.Client, now func() time.Time) *Reader {
	return &Reader{name: name, engine: engine, arns: arns, client: client, now: now}
}

// LookUp returns the accesses of targets. Only the provider knows which target a plan means: for a
// target without a name, LookUp returns all accesses. One secret that cannot be read does not keep
// the provider from the other targets: its access says why.
func (s *Reader) LookUp(ctx context.Context, targets []provider.Target) (json.RawMessage, error) {
	// A target that is not in today's settings has no access: the provider says so.
	names := slices.DeleteFunc(s.arns.Names(), func(name string) bool {
		asked := func(t provider.Target) bool { return t.Name == "" || t.Name == name }
		return len(targets) > 0 && !slices.ContainsFunc(targets, asked)
	})
	accesses := hosted.Accesses{}
	for _, name := range names {
		a, err := s.access(ctx, name)
		switch {
		case err != nil && (len(names) == 1 || ctx.Err() != nil):
			return nil, err
		case err != nil:
			a = hosted.Access{Unreadable: err.Error()}
		}
		accesses[name] = a
	}
	return json.Marshal(accesses)
}

func (s *Reader) access(ctx context.Context, name string) (hosted.Access, error) {
	at := s.now()
	if kept, ok := s.kept.Load(name); ok && at.Before(kept.(keptAccess).until) {
		return kept.(keptAccess).access, nil
	}
	arn := s.arns[name]
	out, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
	if err != nil {
		return hosted.Access{}, fmt.Errorf("reading the secret of target %q: %w", name, err)
	}
	setting := fmt.Sprintf("the secret of target %q of %s", name, s.name)
	a, err := hosted.ParseSecret(setting, []byte(aws.ToString(out.SecretString)), s.engine)
	if err != nil {
		return hosted.Access{}, err
	}
	s.kept.Store(name, keptAccess{a, at.Add(keptFor)})
	return a, nil
}

// Forget makes the next look-up read all secrets again, after a fault that a rotated password may
// have caused.
func (s *Reader) Forget() { s.kept.Clear() }
