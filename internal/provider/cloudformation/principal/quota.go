package principal

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A usage is the number of principals in the account, and their quota.
type usage struct {
	made, most int
	at         time.Time
}

func (u usage) full() bool { return u.most > 0 && u.made >= u.most }

const (
	// usageFor is how long a usage is believed that leaves room.
	usageFor = 10 * time.Minute
	// nearlyFull is the used percentage of the quota from which an operator is warned.
	nearlyFull = 80
)

func full() error {
	return provider.Failf("The account is full: there is no room for the credentials of another binding. " +
		"Tell the operator of the broker.")
}

// room fails if the account is full. It passes if the account does not say: then the creation will
// tell. A usage counts what is made and not what is removed since the account was asked, so room asks
// again before it fails.
func (k *Keeper) room(ctx context.Context, kind plan.Principal) error {
	u, _ := k.usage.Get(string(kind))
	if now := k.Now(); u.full() || now.After(u.at.Add(usageFor)) {
		made, most, err := k.IAM.Usage(ctx, kind)
		if err != nil && !awserr.Is(err, awserr.Denied) {
			return err
		}
		u = usage{made, most, now}
		if made*100 >= most*nearlyFull && made < most {
			k.Log.Warn("the account is nearly full: ask AWS to raise its limit, or use another account", "kind", kind, "made",
				made, "most", most)
		}
	}
	if u.full() {
		k.Log.Error("the account is full: ask AWS to raise its limit, or use another account", "kind", kind, "made", u.made,
			"most", u.most)
		return full()
	}
	u.made++
	k.usage.Put(string(kind), u)
	return nil
}
