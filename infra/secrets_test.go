package main

import (
	"encoding/json"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// AWS makes the password when it makes the secret: nobody can read it in a template, and no deployment changes it.
func TestThePasswordStandsNowhere(t *testing.T) {
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			made := must(t, variant)
			secret := made.one(t, "AWS::SecretsManager::Secret", "")
			expect.Same[any](t, "how it is made", map[string]any{
				"SecretStringTemplate": `{"username":"broker"}`, "GenerateStringKey": "password", "PasswordLength": 40.0,
				"ExcludePunctuation": true,
			}, secret["GenerateSecretString"])
			if secret["SecretString"] != nil || plain(secret["KmsKeyId"]) != "<StateKey.Arn>" {
				t.Errorf("it is %s, by key %s", plain(secret["SecretString"]), plain(secret["KmsKeyId"]))
			}
			text := expect.Get(json.Marshal(made))(t)
			// This would be replaced by the secret itself, wherever it stands.
			expect.Never(t, "the template", string(text), "{{resolve:", "SecretString:")
		})
	}
}
