package app

import (
	"strings"
	"testing"
)

// Whatever is wrong is refused with its setting, all of it at once.
func TestWrongSettingsOfAWSAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set  map[string]string
		want []string
	}{
		"Flag":     {map[string]string{EnvAWS: "yes please"}, []string{EnvAWS, "neither true nor false"}},
		"Emulated": {map[string]string{EnvAWSEmulated: "localstack"}, []string{EnvAWSEmulated, "neither true nor false"}},
		"Targets":  {map[string]string{EnvAWSTargets: "{"}, []string{EnvAWSTargets, "JSON as it should be"}},
		"All": {map[string]string{EnvAWS: "2", EnvAWSTargets: `{"targets": {"a": {"vpc": "x"}, "b": {"region": "y"}}}`},
			[]string{EnvAWS, `target "a"`, `target "b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := awsSettings(func(name string) string { return c.set[name] })
			if err == nil {
				t.Fatal("taken")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
		})
	}
}
