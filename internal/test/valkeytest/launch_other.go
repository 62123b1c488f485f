//go:build !unix

package valkeytest

import "errors"

func launch(string, string, string) (<-chan struct{}, func(), error) {
	return nil, nil, errors.New("the server does not run on this system")
}
