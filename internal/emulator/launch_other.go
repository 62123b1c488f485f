//go:build !unix

package emulator

import "errors"

func launch(string, string, string, []string) (<-chan struct{}, error) {
	return nil, errors.New("not possible on this system: set " + endpointVariable + " to an emulated AWS that runs")
}
