package lifecycle

import "time"

// paceMemory is how many operations a pace remembers: the older ones count
// less and less.
const paceMemory = 8

// A Pace is how long the operations of one kind on one plan have really taken.
type Pace struct {
	Samples int           `json:"samples"`
	Mean    time.Duration `json:"mean"`
	Version int64         `json:"-"`
}

// With is the pace after one more operation, which took d.
func (p Pace) With(d time.Duration) Pace {
	if p.Samples < paceMemory {
		p.Samples++
	}
	p.Mean += (d - p.Mean) / time.Duration(p.Samples)
	return p
}
