package deployed

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/longshore/longshore/internal/front/platforms"
)

// A Secret keeps the registry of platforms in a secret of Secrets Manager.
type Secret struct {
	client *secretsmanager.Client
	arn    string
}

// NewSecret returns the secret with that ARN.
func NewSecret(cfg aws.Config, arn string) Secret {
	return Secret{secretsmanager.NewFromConfig(cfg), arn}
}

// Registry implements platforms.Registrar.
func (s Secret) Registry(ctx context.Context) (platforms.Registry, error) {
	r, _, err := s.read(ctx)
	return r, err
}

func (s Secret) read(ctx context.Context) (r platforms.Registry, version string, err error) {
	out, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &s.arn})
	if err != nil {
		return r, "", fmt.Errorf("reading the secret: %w", err)
	}
	// No error repeats the content of the secret.
	r, err = platforms.Decode([]byte(aws.ToString(out.SecretString)))
	if err != nil {
		return r, "", fmt.Errorf("the secret is damaged: %w", err)
	}
	return r, aws.ToString(out.VersionId), nil
}

// The stages of a secret's versions: the version that is read, and a version of this program that is about to be.
const (
	stageCurrent = "AWSCURRENT"
	stageNext    = "LONGSHORE_NEXT"
)

// Change implements platforms.Registrar. The new version becomes the current one only if the
// version that was read still is current.
func (s Secret) Change(ctx context.Context, change func(platforms.Registry) (platforms.Registry, error)) error {
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
		// Hazard: the SDK repeats a call whose answer was lost, and the repetition may meet what the first one did.
		if _, is, unread := s.read(ctx); unread == nil && is == aws.ToString(next.VersionId) {
			return nil
		}
		return platforms.ErrChanging
	}
	if err != nil {
		return fmt.Errorf("making the new version of the secret the current one: %w", err)
	}
	return nil
}
