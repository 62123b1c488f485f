package hosted

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/longshore/longshore/internal/base/provider/target"
)

// A Class says what an error of a server calls for. All errors are passing: an engine refuses
// because of what it sees, never because of an error.
type Class struct {
	Kind   string // of the trouble; empty where nobody has to act
	Remedy string // tells the operator what to do
}

// The classes that all engines share. An engine adds classes where its operators need other words.
var (
	Other  = Class{}
	Busy   = Class{Remedy: "another step works on the same things: look again"}
	Locked = Class{Remedy: "somebody else holds a lock"}

	Away = Class{target.Unreachable, "nobody answers at its address, or it has ended the connection: start it, or repair " +
		"the network path to it"}
	Silent   = Class{target.Silent, "it does not answer in time: it hangs, or has more to do than it can"}
	Starting = Class{target.Starting, "it is starting or stopping; the broker asks again: look at its log if that lasts"}
	ReadOnly = Class{target.ReadOnly, "it takes no changes: it is a replica, or was made read-only. Have the " +
		"settings lead to the one that takes them"}
	Login     = Class{target.Login, "it refuses the broker's login: give its current name and password in the settings"}
	Full      = Class{target.Full, "it has no room left: give it disk or memory, and look at what fills it"}
	Untrusted = Class{target.Certificate, "its certificate is not to be trusted: give the CA that signed it in the settings"}
)

// class returns an error's class.
func (p *Provider[C, V]) class(err error) Class {
	if err == nil || errors.Is(err, context.Canceled) { // the broker itself ended the call
		return Other
	}
	if errors.Is(err, ErrChanged) {
		return Busy
	}
	if own := p.Class(err); own != Other {
		return own
	}
	return OnTheWay(err)
}

// OnTheWay returns the class of an error of the network or of time; Other for any other error.
func OnTheWay(err error) Class {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	network, onTheWay := errors.AsType[net.Error](err)
	switch {
	case untrusted:
		return Untrusted
	case errors.Is(err, context.DeadlineExceeded), onTheWay && network.Timeout():
		return Silent
	case onTheWay, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Away
	}
	return Other
}

// Explain adds to an error of a target what the operator does about it.
func (p *Provider[C, V]) Explain(name string, err error) error {
	class := p.class(err)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case p.Told != nil:
		err = p.Told(err)
	}
	if class.Kind == "" {
		return fmt.Errorf("target %q: %w", name, err)
	}
	t := &target.Trouble{Kind: class.Kind, Target: name, Message: class.Remedy, Err: err}
	if p.Detail != nil {
		t.Message += p.Detail(name, class)
	}
	return t
}
