package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/front/platforms"
)

// Secrets is the part of *secretsmanager.Client that env calls.
type Secrets interface {
	GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput,
		opts ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// apiPlace is the placeholder for the id of the REST API in a URL.
const apiPlace = "{api}"

// env prints one line for a shell to evaluate. If url is empty, it uses the URL of the stack.
func env(ctx context.Context, client Secrets, said map[string]string, url string, out io.Writer) error {
	secret, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: new(said[outputs.Secret])})
	if err != nil {
		return fmt.Errorf("reading the platform's credential: %w", err)
	}
	var c platforms.Credential
	// The error must not repeat anything of the secret.
	if json.Unmarshal([]byte(aws.ToString(secret.SecretString)), &c) != nil || c.Username == "" || c.Password == "" {
		return errors.New(`the secret is not a JSON object with "username" and "password"`)
	}
	if url == "" {
		url = said[outputs.URL]
	}
	url = strings.ReplaceAll(url, apiPlace, said[outputs.API])
	_, err = fmt.Fprintf(out, "export BROKER_URL=%s BROKER_USERNAME=%s BROKER_PASSWORD=%s\n", quote(url), quote(c.Username),
		quote(c.Password))
	return err
}

// quote returns a text as one word of a POSIX shell.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+,="
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
