package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Fault is how a call to the world goes wrong.
type Fault int

// The faults.
const (
	// Refused: the call did nothing and answered with an error.
	Refused Fault = iota
	// Lost: the call did its work, and its answer was lost.
	Lost
	// Late: the call timed out, and does its work when it is disarmed.
	Late
	// Killed: the call did its work, and the process died of it: it makes no
	// further call, and nobody hears what the step would have answered.
	Killed
)

var faultNames = map[Fault]string{Refused: "Refused", Lost: "Lost", Late: "Late", Killed: "Killed"}

func (f Fault) String() string { return faultNames[f] }

// ErrFault is what a call that goes wrong answers with.
var ErrFault = errors.New("the world answered with a fault")

// Calls are those by which one process reaches its world. The zero Calls all
// go well.
type Calls struct {
	mu     sync.Mutex
	left   int // calls until the fault; 0 for none
	fault  Fault
	struck bool
	dead   bool
	late   func()
}

// Arm makes the nth call from now go wrong. Struck reports whether it was
// reached. Disarm ends this: the dead live again, and what is late lands.
func (c *Calls) Arm(n int, fault Fault) (struck func() bool, disarm func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.fault, c.struck, c.dead, c.late = n, fault, false, false, nil
	struck = func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.struck
	}
	return struck, func() {
		c.mu.Lock()
		land := c.late
		c.left, c.dead, c.late = 0, false, nil
		c.mu.Unlock()
		if land != nil {
			land()
		}
	}
}

// Waiting reports whether a call is late and has not landed yet.
func (c *Calls) Waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.late != nil
}

// Call makes one call, which do does.
func (c *Calls) Call(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	strikes := c.left == 1
	c.left = max(c.left-1, 0)
	dead, fault := c.dead, c.fault
	if strikes {
		c.struck, c.dead = true, fault == Killed
	}
	if strikes && fault == Late {
		c.late = func() { _ = do() }
	}
	c.mu.Unlock()
	switch {
	case dead:
		return ErrFault
	case !strikes:
		return do()
	case fault == Late:
		return fmt.Errorf("calling the world: %w", context.DeadlineExceeded)
	case fault != Refused:
		_ = do()
	}
	return ErrFault
}
