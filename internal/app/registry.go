package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/front/platforms"
)

// NewPassword is at least 128 random bits in letters and digits, which every platform
// and shell takes unquoted.
func NewPassword() string { return rand.Text() }

// NewUUID is a random UUID (RFC 9562, version 4).
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// shortPassword is the length below which a password can be guessed.
const shortPassword = 12

// warnOfShort warns of short passwords.
func warnOfShort(r platforms.Registry, dir string, log *slog.Logger) {
	for _, p := range r.Platforms {
		if p.Removed.IsZero() && utf8.RuneCountInString(p.Password) < shortPassword {
			log.Warn(fmt.Sprintf("a password has fewer than %d characters, and may be guessed: "+
				"`longshore platform rotate %s --data %s` gives another", shortPassword, p.Name, dir), "platform", p.Name)
		}
	}
}

// A Registrar keeps the registry of platforms.
type Registrar interface {
	Registry(ctx context.Context) (platforms.Registry, error)
	// Change replaces the registry with what f makes of it. It changes nothing if f fails,
	// or if somebody else changes the registry meanwhile.
	Change(ctx context.Context, f func(platforms.Registry) (platforms.Registry, error)) error
}

// errChanging says that two operators change the registry at once.
var errChanging = errors.New("somebody else is changing the platforms: run the command again")

// platformNames gives the names of all platforms by their ids, removed ones included:
// what these made may be left.
func platformNames(from Registrar) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		r, err := from.Registry(ctx)
		if err != nil {
			return nil, err
		}
		names := map[string]string{}
		for _, p := range r.Platforms {
			names[p.ID] = p.Name
		}
		return names, nil
	}
}

// A secretRegistrar keeps the registry in a secret of Secrets Manager.
type secretRegistrar struct {
	client *secretsmanager.Client
	arn    string
}

// StackRegistrar keeps the registry of a deployed broker. It uses the caller's own
// rights: to describe the stack, and to read and write its secret.
func StackRegistrar(ctx context.Context, stack string) (Registrar, error) {
	cfg, said, err := describe(ctx, stack)
	return secretRegistrar{secretsmanager.NewFromConfig(cfg), said[outputs.Secret]}, err
}

// describe has a stack say of itself what it does, in the account that the SDK's settings
// lead to.
func describe(ctx context.Context, stack string) (cfg aws.Config, said map[string]string, err error) {
	if cfg, err = config.LoadDefaultConfig(ctx); err != nil {
		return cfg, nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	said, err = outputs.Of(ctx, cloudformation.NewFromConfig(cfg), stack)
	return cfg, said, err
}

// Registry implements Registrar.
func (s secretRegistrar) Registry(ctx context.Context) (platforms.Registry, error) {
	r, _, err := s.read(ctx)
	return r, err
}

func (s secretRegistrar) read(ctx context.Context) (r platforms.Registry, version string, err error) {
	out, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &s.arn})
	if err != nil {
		return r, "", fmt.Errorf("reading the secret: %w", err)
	}
	// What is in the secret never gets into an error.
	r, err = platforms.Decode([]byte(aws.ToString(out.SecretString)))
	if err != nil {
		return r, "", fmt.Errorf("the secret is damaged: %w", err)
	}
	return r, aws.ToString(out.VersionId), nil
}

// The stages of a secret's versions: the one that is read, and one of ours that
// is about to be.
const (
	stageCurrent = "AWSCURRENT"
	stageNext    = "LONGSHORE_NEXT"
)

// Change implements Registrar. The new version becomes the current one only if
// the one that was read still is.
func (s secretRegistrar) Change(ctx context.Context, change func(platforms.Registry) (platforms.Registry, error)) error {
	r, was, err := s.read(ctx)
	if err == nil {
		r, err = change(r)
	}
	if err != nil {
		return err
	}
	raw, err := r.Encode()
	if err != nil {
		return err
	}
	next, err := s.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: &s.arn, SecretString: aws.String(string(raw)), VersionStages: []string{stageNext},
	})
	if err != nil {
		return fmt.Errorf("writing the secret: %w", err)
	}
	_, err = s.client.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: &s.arn, VersionStage: aws.String(stageCurrent), MoveToVersionId: next.VersionId, RemoveFromVersionId: &was,
	})
	if refused := (*types.InvalidParameterException)(nil); errors.As(err, &refused) {
		return errChanging
	}
	if err != nil {
		return fmt.Errorf("making the new version of the secret the current one: %w", err)
	}
	return nil
}
