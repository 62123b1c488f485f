package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// username is the user name of the first login, until an operator chooses another.
const username = "broker"

// Secrets are the platforms' logins, with the ids under which their records are kept: without the
// ids, the records would belong to nobody. AWS generates the first password when it makes the
// stack, so no template contains it. The secret outlives the stack, as the records do.
type Secrets struct {
	// ARN is the secret's full ARN.
	ARN *string
	key awskms.IKey
}

// NewSecrets returns the logins that another stack left, which owns them. Without these, it makes the login of
// the first platform. AWS chooses the name of the secret, so that it never collides with a secret that was kept.
func NewSecrets(scope constructs.Construct, s Settings, key awskms.IKey) *Secrets {
	if s.Secret != "" {
		return &Secrets{ARN: &s.Secret, key: key}
	}
	scope = subscope(scope, "Secrets")
	secret := awssecretsmanager.NewSecret(scope, new("Platform"), &awssecretsmanager.SecretProps{
		Description:   new("The platforms' logins to the broker, and their ids"),
		EncryptionKey: key,
		RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			SecretStringTemplate: new(`{"username":"` + username + `"}`),
			GenerateStringKey:    new("password"),
			PasswordLength:       jsii.Number(40),
			// Platforms and shells take letters and digits unquoted.
			ExcludePunctuation: new(true),
		},
	})
	except(secret, exception{rule: "AwsSolutions-SMG4",
		reason: "The platform keeps the same password, and nothing in the specification tells it " +
			"of a new one: rotation by a schedule would lock it out. The operator changes both."})
	// The ARN comes from an attribute. A reference would give it on AWS, too, but on an emulator
	// only the name, for which a policy would allow nothing.
	arn := secret.Node().DefaultChild().(awssecretsmanager.CfnSecret).AttrId()
	return &Secrets{ARN: arn, key: key}
}

// Reading returns the rights to read the secret, and to use its key through Secrets Manager only.
func (s *Secrets) Reading() Grants {
	opening := allow("CredentialKey", s.key.KeyArn(), "kms:Decrypt").when("StringEquals", map[string]any{
		"kms:ViaService": service(s.key, "secretsmanager"), "kms:EncryptionContext:SecretARN": s.ARN,
	})
	return append(allow("Credential", s.ARN, "secretsmanager:GetSecretValue"), opening...)
}

// Register returns the command that registers the broker with Cloud Foundry. The command reads the
// user name and the password when it runs.
func (s *Secrets) Register(url *string) *string {
	return new(fmt.Sprintf(`login="$(aws secretsmanager get-secret-value --region %s --secret-id %s `+
		`--query SecretString --output text)"; `+
		`cf create-service-broker longshore "$(jq -r .username <<<"$login")" "$(jq -r .password <<<"$login")" %s`,
		*awscdk.Stack_Of(s.key).Region(), *s.ARN, *url))
}
