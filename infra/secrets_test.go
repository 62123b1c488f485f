package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// AWS makes the password when it makes the secret: nobody can read it in a
// template, and no deployment changes it.
func TestThePasswordStandsNowhere(t *testing.T) {
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			made := must(t, variant)
			secret := made.one(t, "AWS::SecretsManager::Secret", "")
			if d := cmp.Diff(map[string]any{
				"SecretStringTemplate": `{"username":"broker"}`, "GenerateStringKey": "password", "PasswordLength": 40.0,
				"ExcludePunctuation": true,
			}, secret["GenerateSecretString"]); d != "" {
				t.Errorf("how it is made (-want +got):\n%s", d)
			}
			if secret["SecretString"] != nil || plain(secret["KmsKeyId"]) != "<StateKey.Arn>" {
				t.Errorf("it is %s, by key %s", plain(secret["SecretString"]), plain(secret["KmsKeyId"]))
			}
			text, err := json.Marshal(made)
			if err != nil {
				t.Fatal(err)
			}
			// This would be replaced by the secret itself, wherever it stands.
			for _, never := range []string{"{{resolve:", "SecretString:"} {
				if strings.Contains(string(text), never) {
					t.Errorf("the template has %q in it", never)
				}
			}
		})
	}
}
