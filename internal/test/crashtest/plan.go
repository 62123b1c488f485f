package crashtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A fault is what happens at an effect.
type fault int

// The faults.
const (
	none       fault = iota
	dieBefore        // the process dies, and the effect does not happen
	dieAfter         // it happens, and the process dies
	lost             // it happens, and the process is told that it did not
	refused          // it does not happen, and the process is told so
	late             // a call to the cloud: the process dies, the call lands later, before any lease of it ends
	veryLate         // it lands when no lease protects from it any more
	unsure           // the process is told that its call timed out; it lands later
	suspended        // the process stands still, and goes on while its time lasts
	firstFault = dieBefore
	lastFault  = suspended
)

func (f fault) String() string {
	return [...]string{"none", "dying before", "dying after", "a lost answer", "a refusal", "a late call", "a very late call",
		"a call that times out and lands", "a suspended process"}[f]
}

// A plan is what happens in a history.
type plan struct {
	name   string
	script []act
	// alone says that there is one process: when it dies, all of it does, and
	// the next one knows it.
	alone  bool
	faults map[int]fault // at the n-th effect
	rng    *rand.Rand
	// times says how right those of requests are.
	times times
	amiss time.Duration // how far they are behind
	// raw says that the broker's clock goes back with the machine's; else it goes
	// on, as the embedded broker's does.
	raw bool
	// patient says that the platform allows no answer before the work is done.
	patient bool
	// lively has things happen in any order; else one after another.
	lively bool
	// blunt has a call that puts something out of use not look whose it is by then.
	blunt bool
}

// times are those at which requests seem to arrive.
type times int

const (
	right  times = iota
	behind       // all by as much, up to an hour
	anyhow       // each is off by up to an hour, this way or that: they prove nothing
)

func (t times) String() string { return [...]string{"right", "behind", "off anyhow"}[t] }

// An act is something that a platform does, or that happens to the machine.
type act struct {
	do      string
	binding string
	// steps is how many steps of work are done before the next act; -1 waits
	// for the end.
	steps int
}

const wait = -1

// scripts are the lifecycles.
var scripts = map[string][]act{
	"Provision":       {{"provision", "", wait}},
	"Update":          {{"provision", "", wait}, {"update", "", wait}},
	"Bind":            {{"provision", "", wait}, {"bind", "b", wait}},
	"Unbind":          {{"provision", "", wait}, {"bind", "b", wait}, {"unbind", "b", wait}},
	"Rotate":          {{"provision", "", wait}, {"bind", "b", wait}, {"rotate", "c", wait}, {"unbind", "b", wait}},
	"Deprovision":     {{"provision", "", wait}, {"bind", "b", wait}, {"deprovision", "", wait}},
	"Overtaken":       {{"provision", "", 1}, {"deprovision", "", wait}},
	"OvertakenAtOnce": {{"provision", "", 0}, {"deprovision", "", wait}},
	"BindOvertaken":   {{"provision", "", wait}, {"bind", "b", 1}, {"unbind", "b", wait}},
	"BindAndGone":     {{"provision", "", wait}, {"bind", "b", 1}, {"deprovision", "", wait}},
	"UpdateAndGone":   {{"provision", "", wait}, {"update", "", 1}, {"deprovision", "", wait}},
	"Cancelled":       {{"provision", "", 1}, {"cancel", "", wait}},
	"BindCancelled":   {{"provision", "", wait}, {"bind", "b", 1}, {"cancel", "b", wait}},
	"Again":           {{"provision", "", wait}, {"deprovision", "", wait}, {"provision", "", wait}, {"bind", "b", wait}},
	"AgainOvertaken":  {{"provision", "", 1}, {"deprovision", "", wait}, {"provision", "", wait}},
	"LatePut":         {{"late provision", "", 0}, {"deprovision", "", wait}, {"arrivals", "", wait}},
	"LateDelete": {{"provision", "", wait}, {"late deprovision", "", 0}, {"deprovision", "", wait}, {"provision", "", wait},
		{"arrivals", "", wait}},
	"ClockBack": {{"provision", "", wait}, {"bind", "b", wait}, {"clock back", "", 0}, {"unbind", "b", wait},
		{"clock back", "", 0},
		{"deprovision", "", wait}},
	"ClockBackAgain": {{"provision", "", wait}, {"bind", "b", wait}, {"unbind", "b", wait}, {"clock back", "", 0},
		{"bind", "b", wait},
		{"clock back", "", 0}, {"deprovision", "", wait}, {"clock back", "", 0}, {"provision", "", wait}, {"clock on", "", 0},
		{"bind", "b", wait}, {"unbind", "b", wait}},
	"ClockOn": {{"provision", "", 1}, {"clock on", "", 0}, {"deprovision", "", 1}, {"clock back", "", 0},
		{"deprovision", "", wait},
		{"provision", "", wait}},
	"Slept":     {{"provision", "", 1}, {"sleep", "", 0}, {"deprovision", "", wait}},
	"BindSlept": {{"provision", "", wait}, {"bind", "b", 1}, {"sleep", "", 0}, {"deprovision", "", wait}},
	"LateBind":  {{"provision", "", wait}, {"late bind", "b", 0}, {"unbind", "b", wait}, {"arrivals", "", wait}},
}

// keeping are the lifecycles of what is kept when it is deleted.
var keeping = map[string][]act{
	"Kept": {{"provision kept", "", wait}, {"bind", "b", wait}, {"deprovision", "", wait}},
	"KeptAgain": {{"provision kept", "", wait}, {"deprovision", "", wait}, {"provision kept", "", wait},
		{"deprovision", "", wait}},
	"DateCame": {{"provision kept", "", wait}, {"deprovision", "", wait}, {"date", "", 0}},
	"DateBeside": {{"provision kept", "", wait}, {"deprovision", "", wait}, {"provision", "", wait}, {"date", "", 0},
		{"bind", "b", wait}},
	"Undeleted": {{"provision kept", "", wait}, {"deprovision", "", wait}, {"free", "", 0}, {"undelete", "", wait},
		{"bind", "b", wait}},
	"UndeleteFailed": {{"provision kept", "", wait}, {"deprovision", "", wait}, {"free", "", 0}, {"undelete in vain", "", wait}},
	"UndeletedAtLast": {{"provision kept", "", wait}, {"deprovision", "", wait}, {"free", "", 0}, {"undelete", "", 1},
		{"deprovision", "", wait}, {"free", "", 0}, {"undelete", "", wait}},
	"UndeletedAndGone": {{"provision kept", "", wait}, {"deprovision", "", wait}, {"free", "", 0}, {"undelete", "", wait},
		{"deprovision", "", wait}, {"date", "", 0}},
}

// scripts are the lifecycles that the subject has.
func (s Subject) scripts() map[string][]act {
	all := maps.Clone(scripts)
	if s.Keeps != nil {
		maps.Copy(all, keeping)
	}
	return all
}

// ofOneMachine reports whether a script is about the one machine that there is:
// several have clocks that are set right, and never sleep.
func ofOneMachine(script []act) bool {
	return slices.ContainsFunc(script, func(a act) bool { return a.do == "sleep" || strings.HasPrefix(a.do, "clock ") })
}

// ofTimes reports whether a script goes well only if times can be believed: it has
// requests that are held up.
func ofTimes(script []act) bool {
	return slices.ContainsFunc(script, func(a act) bool { return strings.HasPrefix(a.do, "late ") })
}

func single(name string, script []act, alone, patient bool, kind fault, at int) plan {
	one := ofOneMachine(script)
	return plan{
		name: name, script: script, alone: alone || one, raw: one && !alone, patient: patient, faults: map[int]fault{at: kind},
		rng: rand.New(rand.NewPCG(uint64(at), uint64(kind))),
	}
}

// random is the history of a seed: one script or two after one another, and up
// to three faults.
func random(s Subject, seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	all := s.scripts()
	names := slices.Sorted(maps.Keys(all))
	p := plan{faults: map[int]fault{}, rng: rng, lively: true, alone: rng.IntN(3) == 0}
	for n := range 1 + rng.IntN(2) {
		name := names[rng.IntN(len(names))]
		if n > 0 {
			p.name += ", "
			p.script = append(p.script, act{"deprovision", "", wait})
		}
		p.name += name
		p.script = append(p.script, all[name]...)
	}
	for range 1 + rng.IntN(3) {
		p.faults[1+rng.IntN(12*len(p.script))] = fault(1 + rng.IntN(int(lastFault)))
	}
	p.patient = rng.IntN(4) == 0
	p.alone = p.alone || ofOneMachine(p.script)
	p.raw = rng.IntN(2) == 0 && !ofTimes(p.script)
	switch p.times = times(rng.IntN(int(anyhow) + 1)); {
	case p.times == anyhow && ofTimes(p.script):
		p.times = right
	case p.times == behind:
		p.amiss = time.Duration(rng.Int64N(int64(time.Hour)))
	}
	p.name = fmt.Sprintf("seed %d: %s", seed, p.name)
	return p
}

// needs is what a safeguard is there for: the lifecycle and the fault that show
// soonest that it is missed.
var needs = map[Safeguard]struct {
	script string
	kind   fault
}{
	Lease:       {"BindAndGone", unsure},
	Fence:       {"Overtaken", suspended},
	Incarnation: {"AgainOvertaken", veryLate},
	Tombstone:   {"LatePut", none},
	Memory:      {"Slept", suspended},
	Owner:       {"UndeletedAtLast", veryLate},
	FormerLease: {"Undeleted", unsure},
	Transaction: {"Undeleted", dieAfter},
}

// directed is a random history of what a safeguard is there for.
func directed(g Safeguard, seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := needs[g]
	script := Subject{Keeps: map[string]any{}}.scripts()[n.script]
	return plan{
		name: fmt.Sprintf("%s without the %s, seed %d", n.script, g, seed), script: script, lively: true, rng: rng,
		faults: map[int]fault{1 + rng.IntN(12*len(script)): n.kind}, alone: ofOneMachine(script), blunt: g == FormerLease,
	}
}

// after is how much later a call lands.
func (p plan) after(kind fault) time.Duration {
	if kind == veryLate && p.rng.IntN(2) == 0 {
		return leaseTime + time.Duration(p.rng.Int64N(int64(20*time.Second))) // when the id may be used again
	}
	if kind == veryLate {
		return leaseTime + time.Duration(p.rng.Int64N(int64(3*time.Hour)))
	}
	// A call on its way lands while the lease of its step lasts.
	return time.Duration(p.rng.Int64N(int64(leaseTime - 10*time.Second)))
}
