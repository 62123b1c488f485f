package app

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// ProviderCloudFormation is the name, in offering files, of the provider that makes AWS
// services from templates.
const ProviderCloudFormation = "cloudformation"

// Its settings in the environment. Which account it works in, and as whom, is for the
// SDK's own to say: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL and others.
const (
	EnvAWS         = "LONGSHORE_AWS"          // true: the embedded broker offers it
	EnvAWSTargets  = "LONGSHORE_AWS_TARGETS"  // bootstrap.Targets as JSON, or the path of a file that holds it
	EnvAWSEmulated = "LONGSHORE_AWS_EMULATED" // true: AWS is emulated by what puts no token on a stack's events
)

// ScopeOfStack is the beginning of the names of everything that a deployed broker
// makes.
func ScopeOfStack(stack string) plan.Scope { return plan.ScopeOf(stack) }

// ScopeOfFolder is the same for the broker over a data folder. It reads the identity of
// the folder, and sets the folder up if there is none; a broker may run on it.
func ScopeOfFolder(dir string) (plan.Scope, error) {
	mark, found, err := readMarker(filepath.Join(dir, fileMarker))
	if err != nil || !found {
		f, err := openFolder(dir, false)
		if err != nil {
			return "", err
		}
		defer f.close()
		mark = f.mark
	}
	return plan.ScopeOf(mark.Broker), nil
}

// An awsSetting is what the environment says of the provider.
type awsSetting struct {
	on, emulated bool
	targets      bootstrap.Targets
}

// awsSettings reads and checks the settings.
func awsSettings(getenv func(string) string) (s awsSetting, err error) {
	on, err1 := flagIn(getenv, EnvAWS)
	emulated, err2 := flagIn(getenv, EnvAWSEmulated)
	targets, err3 := bootstrap.ParseTargets(EnvAWSTargets, getenv(EnvAWSTargets))
	return awsSetting{on, emulated, targets}, errors.Join(err1, err2, err3)
}

// flagIn reads a setting that is true or false, which it is unless it is set.
func flagIn(getenv func(string) string, name string) (bool, error) {
	text := getenv(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, advice.For(name, fmt.Sprintf("%q is neither true nor false", text), "give one of them, or leave it out")
	}
	return on, nil
}
