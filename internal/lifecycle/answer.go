package lifecycle

import "time"

// An Answer is what a request to a record comes to, when it is not refused.
type Answer int

// The answers.
const (
	Begin   Answer = iota + 1 // begin a new operation
	Join                      // the same operation runs already
	Stays                     // it has failed, and stays so until it is deleted
	Exists                    // it is so already
	Missing                   // nothing to delete
)

// OnPut answers a PUT (checklist sections 14.1 and 14.2). Same says whether the
// request asks for what the record has; it means nothing where there is nothing.
// Permitted says that the client understands a 202.
func (r Record) OnPut(same, permitted bool, received, now time.Time) (Answer, error) {
	switch seen := r.Seen(); {
	case seen == Absent:
		return Begin, nil
	case seen == Ready && r.lost(): // and with it what the request would be compared to
		return 0, refuseLost()
	case seen != Deleted && !same && r.IsBinding():
		return 0, Refuse(Conflict, "A service binding with this id exists with other attributes; use another id.")
	case seen != Deleted && !same:
		return 0, Refuse(Conflict, "A service instance with this id exists with other attributes; use another id or update it.")
	case permitted && r.FailedCreation() != nil:
		return Stays, nil
	}
	switch r.State {
	case Deleted:
		// A PUT that was sent before the deletion and arrives after it: the
		// platform believes it gone (ORB-03).
		if r.overtaken(received, now) {
			return 0, Refuse(ConcurrencyError, "A later request deleted this %s.", r.Noun())
		}
		return Begin, nil
	case Creating:
		return Join, nil
	case CreateFailed:
		return Begin, nil
	case Ready:
		if r.Unusable {
			return 0, refuseUnusable()
		}
		return Exists, nil
	case DeleteFailed:
		return 0, refuseHalfDeleted(r.Key)
	default: // Updating, Deleting
		return 0, RefuseConcurrent()
	}
}

// OnPatch answers a PATCH of an instance. Same says whether a running update
// leads to the attributes that the request asks for.
func (r Record) OnPatch(same bool, received, now time.Time) (Answer, error) {
	switch r.Seen() {
	case Absent, Deleted:
		return 0, refuseMissing(r.Key)
	case Ready:
		if r.overtaken(received, now) {
			return 0, refuseEarlier(r.Key)
		}
		return Begin, nil // also after a failed update, to repair (UPD-25)
	case Updating:
		if same {
			return Join, nil
		}
		return 0, RefuseConcurrent()
	case CreateFailed:
		return 0, refuseHalfMade()
	case DeleteFailed:
		return 0, refuseHalfDeleted(r.Key)
	default: // Creating, Deleting
		return 0, RefuseConcurrent()
	}
}

// OnDelete answers a DELETE: safe in every state (ORB-01, ORB-02), refused while
// an update runs (DEPR-09), and if it meant an earlier life of this id. It is
// never answered 410 where there is one.
func (r Record) OnDelete(received, now time.Time) (Answer, error) {
	switch r.State {
	case Absent, Deleted:
		return Missing, nil
	case Updating:
		return 0, RefuseConcurrent()
	case Deleting:
		return Join, nil
	case DeleteFailed: // it is to be deleted, whoever asks
		return Begin, nil
	default: // Creating, Ready, CreateFailed
		if r.overtaken(received, now) {
			return 0, refuseEarlier(r.Key)
		}
		return Begin, nil
	}
}

// OnGet answers a GET. Of what is being removed it does not say that there is
// none: platforms that go by a GET would forget it, and its removal may yet fail
// (GETI-01 to GETI-07, GETB-01 to GETB-03).
func (r Record) OnGet() error {
	switch r.Seen() {
	case Ready, DeleteFailed:
		if r.lost() {
			return refuseLost()
		}
		return nil
	case Updating, Deleting:
		return RefuseConcurrent()
	default: // Absent, Creating, CreateFailed, Deleted
		return refuseMissing(r.Key)
	}
}

// OnBind says whether a new binding of this instance may begin. A request from
// before a deletion meant the instance that had this id then.
func (r Record) OnBind(received, now time.Time) error {
	switch r.Seen() {
	case Absent, Deleted:
		return refuseMissing(r.Key)
	case Ready:
		switch {
		case r.overtaken(received, now):
			return refuseEarlier(r.Key)
		case r.Unusable:
			return refuseUnusable()
		}
		return nil
	case CreateFailed:
		return refuseHalfMade()
	case DeleteFailed:
		return refuseHalfDeleted(r.Key)
	default: // Creating, Updating, Deleting
		return RefuseConcurrent()
	}
}

// OnUnbind says whether a binding of this instance may begin to be removed: also
// when the instance is not healthy (UNB-10), but not while it changes (CONC-08).
func (r Record) OnUnbind() error {
	switch r.State {
	case Updating, Deleting:
		return RefuseConcurrent()
	}
	return nil
}

// OnSucceed answers whether another binding of the instance may succeed this
// one, which goes on being valid beside it (ROT-03, ROT-04, ROT-06).
func (r Record) OnSucceed(instance string) error {
	switch seen := r.Seen(); {
	case seen == Ready && r.InstanceIncarnation == instance:
		return nil
	case seen == Creating, seen == Deleting:
		return RefuseConcurrent()
	default: // Absent, CreateFailed, DeleteFailed, Deleted; what an earlier instance had
		return Refuse(BadRequest, "There is no service binding with the id of predecessor_binding_id on this service instance.")
	}
}

// Of is the binding as it stands with its instance: what failed on one that is
// gone is forgotten with it.
func (r Record) Of(i Record) Record {
	if !i.Exists() || i.Incarnation != r.InstanceIncarnation {
		r.Failed = nil
	}
	return r
}

// Exists reports whether there is something, in whatever state it is.
func (r Record) Exists() bool { return r.State != Absent && r.State != Deleted }

// lost reports whether the credentials of a binding that exists are not known
// any more.
func (r Record) lost() bool { return r.IsBinding() && r.Grant == nil && !r.Rebuilt.IsZero() }

func refuseMissing(k Key) *Refusal {
	return Refuse(NotFound, "There is no %s with this id.", k.Noun())
}

func refuseEarlier(k Key) *Refusal {
	return Refuse(ConcurrencyError, "The request arrived before the one that made this %s, "+
		"and meant an earlier one with this id, which was deleted; repeat it if it means this one.", k.Noun())
}

func refuseHalfMade() *Refusal {
	return Refuse(Unprocessable, "The service instance could not be created; delete it.")
}

func refuseHalfDeleted(k Key) *Refusal {
	return Refuse(Unprocessable, "The %s could not be deleted completely; delete it again.", k.Noun())
}

func refuseUnusable() *Refusal {
	return Refuse(Unprocessable, "The service instance is unusable since its last update failed; update it again or delete it.")
}

// refuseLost is not a 404, though there is nothing to show: platforms that go by
// that would forget a binding that exists, and whose credentials still work.
func refuseLost() *Refusal {
	return Refuse(Unprocessable, "The credentials of this service binding were lost; rotate it, or unbind it and bind again.")
}
