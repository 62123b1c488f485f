package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// username is the first login, until an operator chooses another.
const username = "broker"

// Secrets are the platforms' logins, and the ids of their records: without the ids, the records
// belong to nobody. AWS makes the first password when it makes the stack, so no template holds
// it. They outlive the stack, as its records do.
type Secrets struct {
	// ARN is the secret's full ARN.
	ARN    *string
	key    awskms.IKey
	region *string
}

// FoundSecrets are the secrets that another stack left, by their ARN and key. This stack does
// not own them.
func FoundSecrets(scope constructs.Construct, arn string, key awskms.IKey) *Secrets {
	return &Secrets{ARN: &arn, key: key, region: awscdk.Stack_Of(scope).Region()}
}

// NewSecrets makes the first platform's login. AWS chooses the name of the secret, so
// that it never collides with one that was kept.
func NewSecrets(scope constructs.Construct, key awskms.IKey) *Secrets {
	scope = subscope(scope, "Secrets")
	secret := awssecretsmanager.NewSecret(scope, new("Platform"), &awssecretsmanager.SecretProps{
		Description:   new("What platforms log in to the broker with, and their ids"),
		EncryptionKey: key,
		RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			SecretStringTemplate: new(`{"username":"` + username + `"}`),
			GenerateStringKey:    new("password"),
			PasswordLength:       jsii.Number(40),
			// Platforms and shells take letters and digits as they are.
			ExcludePunctuation: new(true),
		},
	})
	except(secret, exception{rule: "AwsSolutions-SMG4",
		reason: "The platform keeps the same password, and nothing in the specification tells it " +
			"of a new one: rotation by a schedule would lock it out. The operator changes both."})
	// An attribute gives the ARN. A reference gives it on AWS, too, but on an emulator the mere
	// name, for which a policy would allow nothing.
	arn := secret.Node().DefaultChild().(awssecretsmanager.CfnSecret).AttrId()
	return &Secrets{ARN: arn, key: key, region: awscdk.Stack_Of(scope).Region()}
}

// Reading is for reading the credential, by way of Secrets Manager alone.
func (s *Secrets) Reading() Grants {
	opening := allow("CredentialKey", s.key.KeyArn(), "kms:Decrypt").when("StringEquals", map[string]any{
		"kms:ViaService": service(s.key, "secretsmanager"), "kms:EncryptionContext:SecretARN": s.ARN,
	})
	return append(allow("Credential", s.ARN, "secretsmanager:GetSecretValue"), opening...)
}

// Register is the command that registers the broker with Cloud Foundry. It reads the user name
// and the password when it runs.
func (s *Secrets) Register(url *string) *string {
	return awscdk.Fn_Join(new(""), &[]*string{
		new(`login="$(aws secretsmanager get-secret-value --region `), s.region, new(` --secret-id `), s.ARN,
		new(` --query SecretString --output text)"; ` +
			`cf create-service-broker longshore "$(jq -r .username <<<"$login")" "$(jq -r .password <<<"$login")" `),
		url,
	})
}
