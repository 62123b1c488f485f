package lifecycle

import "time"

// QuarantineTime is how long an unexplained orphan is kept out of use before its
// deletion begins.
const QuarantineTime = 14 * 24 * time.Hour

// releasedLook is how often the reaper looks whether a released thing has its own record
// again.
const releasedLook = 30 * 24 * time.Hour

// BeginQuarantine begins to put an unexplained orphan out of use. The broker records an
// intent before it makes anything, so the record was most likely lost, and the thing may be
// in use: its users must notice, and have time to say so, before it is deleted. The record
// is a former life's, and accounts for everything that was made for that life.
func (r Record) BeginQuarantine(s Start, orphan Thing) (Record, error) {
	s.Timeout = QuarantineTime // no user waits for it
	r, err := r.begun(BeginQuarantine, s, Quarantine)
	if err == nil {
		r.orphaned(orphan)
		r.Kept = &Kept{Since: s.Now, Until: s.Now.Add(QuarantineTime), Name: orphan.Name}
	}
	return r, err
}

// BeginRelease begins to put an orphan back into use, for good.
func (r Record) BeginRelease(s Start) (Record, error) {
	s.Timeout = QuarantineTime
	return r.begun(BeginRelease, s, Release)
}

// OfOrphan reports whether the record is that of an orphan, in quarantine or released, and not that of a kept life.
func (r Record) OfOrphan() bool { return r.Kept != nil && r.Kept.Name != "" }

// InQuarantine reports whether the thing is out of use, or on the way there or back.
func (r Record) InQuarantine() bool {
	return r.State == Quarantining || r.State == Quarantined || r.State == Releasing
}

// IsReleased reports whether the record is that of an orphan that is in use again, and left alone.
func (r Record) IsReleased() bool { return r.OfOrphan() && r.State == Ready }

// OrphanStands reports whether the record is that of an orphan in quarantine, or released from it, and not of one that is being
// deleted.
func (r Record) OrphanStands() bool { return r.OfOrphan() && (r.InQuarantine() || r.IsReleased()) }

// IsRetained reports whether the record is that of a life that its plan keeps.
func (r Record) IsRetained() bool { return r.Kept != nil && !r.OfOrphan() }

// Postponed makes the reaper check again in an hour whether the date has come.
func (r Record) Postponed(now time.Time) Record {
	r.Due = now.Add(time.Hour)
	return r
}

// LeftAlone makes the reaper check again in a month whether the released thing has its own record again.
func (r Record) LeftAlone(now time.Time) Record {
	r.Due = now.Add(releasedLook)
	return r
}

// Explains reports whether a tombstone tells why the orphan exists. Either the orphan belongs
// to the deleted incarnation, so the deletion left it or a late call made it, or it is older
// than the request that deleted its id.
func (r Record) Explains(o Thing) bool {
	switch {
	case r.State != Deleted:
		return false
	case r.Incarnation != "" && r.Incarnation == o.Incarnation:
		return true
	default:
		return o.Created.Before(r.Expires.Add(-Retention))
	}
}
