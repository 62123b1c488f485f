package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// username is what the platform logs in as.
const username = "broker"

// SecretsProps are what Secrets need.
type SecretsProps struct{ Key awskms.IKey }

// Secrets are what the platform logs in with. The password is made by AWS when
// the stack is made and stands in no template.
type Secrets struct{ Platform awssecretsmanager.Secret }

// ARN is the secret's full ARN by an attribute of that meaning: what a
// reference gives is the ARN on AWS, but the mere name on an emulator, where a
// policy for it would allow nothing.
func (s *Secrets) ARN() *string {
	return s.Platform.Node().DefaultChild().(awssecretsmanager.CfnSecret).AttrId()
}

// NewSecrets makes the platform's credential.
func NewSecrets(scope constructs.Construct, id string, props *SecretsProps) *Secrets {
	scope = constructs.NewConstruct(scope, &id)
	secret := awssecretsmanager.NewSecret(scope, jsii.String("Platform"), &awssecretsmanager.SecretProps{
		Description:   jsii.String("What the platform logs in to the broker with"),
		EncryptionKey: props.Key,
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			SecretStringTemplate: jsii.String(`{"username":"` + username + `"}`),
			GenerateStringKey:    jsii.String("password"),
			PasswordLength:       jsii.Number(40),
			// Platforms and shells take letters and digits as they are.
			ExcludePunctuation: jsii.Bool(true),
		},
	})
	except(secret, exception{rule: "AwsSolutions-SMG4", reason: "The platform keeps the same password, and nothing in the specification tells it " +
		"of a new one: rotation by a schedule would lock it out. The operator changes both."})
	return &Secrets{Platform: secret}
}

// Reading is for reading the credential, whose key is the records' own.
func (s *Secrets) Reading() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{allow("Credential", s.ARN(), "secretsmanager:GetSecretValue")}
}

// Register is the command by which Cloud Foundry is told of the broker. The
// password is read when it runs, and is not in it.
func (s *Secrets) Register(url *string) *string {
	return awscdk.Fn_Join(jsii.String(""), &[]*string{
		jsii.String(`cf create-service-broker longshore ` + username + ` "$(aws secretsmanager get-secret-value --region `),
		awscdk.Stack_Of(s.Platform).Region(), jsii.String(` --secret-id `), s.ARN(),
		jsii.String(` --query SecretString --output text | jq -r .password)" `), url,
	})
}
