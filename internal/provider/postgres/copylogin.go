package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// A copy has logins of its own, one for each side (package pgcopy says why). The acts of bindings' logins make
// and remove them.

const (
	// copyMark is the comment on each login of a copy. It is no label, so that no inventory takes such a
	// login for a binding. A role with another comment is not the broker's.
	copyMark = "longshore-copy"
	// copyValid is how long a login's password is valid. Both programs connect at once, and the sessions that
	// they have begun go on.
	copyValid = "10 minutes"
	// evictActs is the most acts that one call of evictCopy makes.
	evictActs = 8
)

// errForeign says that a role that is not the broker's has the login's name.
var errForeign = errors.New("the name of a copy's login is taken by a role that is not the broker's")

// admitCopy makes the login of a copy, with a password that nobody else knows. A login that only reads may
// change nothing, whatever code it runs.
func admitCopy(ctx context.Context, d *sqlServer, n names, readOnly bool) (pgcopy.Login, error) {
	l := pgcopy.Login{Database: n.database, Owner: n.owner, Name: n.login, Password: rand.Text()}
	verifier, err := scram.Verifier(l.Password)
	if err != nil {
		return l, err
	}
	err = d.with(ctx, func(c sqlSession) error {
		w, a := work{sqlServer: d, sqlSession: c, names: n}, createLogin{label: copyMark, verifier: verifier}
		err := c.row(`SELECT (now() + $1::text::interval)::text`, copyValid).Scan(&a.until)
		if err == nil {
			err = a.do(w)
		}
		if err != nil {
			return err
		}
		return w.keep(n.login, `ALTER ROLE %1$I CONNECTION LIMIT 2;
ALTER ROLE %1$I IN DATABASE %2$I SET default_transaction_read_only = %3$s`, n.database, fmt.Sprint(readOnly))
	})
	if err != nil {
		err = fmt.Errorf("preparing the login of a copy: %w", err)
	}
	return l, err
}

// evictCopy removes the login of a copy, as an unbind removes the login of a binding. It reports whether the
// login is gone: while sessions are ending, or somebody else holds a lock or works on the same things, the
// caller must call it again. It leaves a role alone that is not the broker's.
func evictCopy(ctx context.Context, d *sqlServer, n names) (gone bool, err error) {
	err = d.with(ctx, func(c sqlSession) error {
		for range evictActs {
			now, err := lookOn(c, n)
			if gone = err == nil && !now.login.exists(); gone || err != nil {
				return err
			}
			if now.login.comment != copyMark {
				return errForeign
			}
			if err := now.login.leave(!now.login.canLogin, copyMark).do(work{d, c, n, now}); err != nil {
				return err
			}
		}
		return nil
	})
	_, goesOn := errors.AsType[*hosted.Later](err)
	if class := classOf(err); goesOn || errors.Is(err, hosted.ErrChanged) || class == hosted.Busy || class == hosted.Locked {
		err = nil
	}
	return gone, err
}
