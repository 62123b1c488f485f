package principal

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

const (
	// ReadsPerSecond is how fast an inventory reads tags. The lists of IAM contain no tags, and
	// names are hashes, so a process reads each principal once. Reads cost nothing, but an account
	// has few of them per second, and its people need some. With 5 000 users, the first sweep reads
	// for 8 minutes, spread over its parts.
	ReadsPerSecond = 10
	// pageSize principals take 3 s to read: a part of a sweep begins no page for which it has no
	// time.
	pageSize = 25
)

// List lists the broker's principals page by page, including half-made ones, without their target.
// cursor and next are as in provider.Inventory.
func (k *Keeper) List(ctx context.Context, cursor string) (page []provider.Holding, next string, err error) {
	kind, at, _ := strings.Cut(cmp.Or(cursor, string(kinds[0])), " ")
	listed, more, err := k.IAM.List(ctx, plan.Principal(kind), k.Scope.Path(), at, pageSize)
	if err != nil {
		return nil, "", fmt.Errorf("listing %ss: %w", kind, err)
	}
	for _, f := range listed {
		tags, err := k.tagsOf(ctx, f)
		if err != nil {
			return nil, "", err
		}
		if tags.Broker != k.Broker || tags.Binding == "" {
			continue // not the broker's, or just deleted
		}
		if err := k.lookLate(ctx, f); err != nil {
			return nil, "", err
		}
		page = append(page, provider.Holding{Name: f.Name, Tags: tags, Created: f.Created.UTC()})
	}
	switch {
	case more != "":
		return page, kind + " " + more, nil
	case kind != string(kinds[0]):
		return page, "", nil
	case len(page) == 0: // an account without any principals has no second page
		return k.List(ctx, string(kinds[1]))
	}
	return page, string(kinds[1]), nil
}

// A call whose sender gave up may land for another 15 minutes, as long as AWS accepts its
// signature: it may make a key besides the one that was recorded by then. The inventory looks at
// users older than that once per process, until they are two days old, so that some sweep comes by.
const (
	lateAfter = 15 * time.Minute
	lateUntil = 48 * time.Hour
)

// lookLate logs the keys of a user besides the recorded one. An inventory must delete nothing: the
// next step on the binding revokes the keys. If they cannot be read, the next sweep looks again:
// the inventory is complete without them.
func (k *Keeper) lookLate(ctx context.Context, f Found) error {
	age := k.Now().Sub(f.Created)
	looked, _ := k.looked.Get(f.ARN)
	if f.Kind != plan.User || age < lateAfter || age > lateUntil || looked.Equal(f.Created) {
		return nil
	}
	if err := k.Reads.Wait(ctx); err != nil {
		return err
	}
	keys, err := k.IAM.Keys(ctx, f.Name)
	var full Found
	if err == nil && len(keys) > 1 {
		full, err = k.IAM.Get(ctx, f.Kind, f.Name)
	}
	if err != nil {
		if absentIsFine(err) != nil {
			k.Log.WarnContext(ctx, "the keys of a user cannot be read", "user", f.Name, "error", err)
		}
		return ctx.Err()
	}
	for _, key := range keys { // a single key has no tag to compare it with
		if recorded := full.Tags[keyLabel]; recorded != "" && key.ID != recorded {
			k.Log.WarnContext(ctx,
				"a user has a key that no record knows: the broker deletes it when its binding ends or its instance is "+
					"updated; or delete it yourself",
				"user", f.Name, "key", key.ID, "made", f.Created)
		}
	}
	k.looked.Put(f.ARN, f.Created)
	return nil
}

// tagsOf returns the tags of a principal; zero if it is gone, or has no readable tags. Tags never
// change during the life of a principal, so a process reads them once; a removal reads them again.
func (k *Keeper) tagsOf(ctx context.Context, f Found) (provider.Tags, error) {
	id := f.ARN + f.Created.String()
	tags, ok := k.read.Get(id)
	if ok {
		return tags, ctx.Err()
	}
	if err := k.Reads.Wait(ctx); err != nil {
		return tags, err
	}
	full, err := k.IAM.Get(ctx, f.Kind, f.Name)
	if awserr.Is(err, awserr.Absent) {
		return tags, nil
	}
	if err != nil {
		return tags, fmt.Errorf("reading the tags of a %s: %w", f.Kind, err)
	}
	tags = full.of()
	k.read.Put(id, tags)
	return tags, nil
}

// quarantineLabel is the tag of a principal in quarantine. Its value is the ids of the keys that
// were active before, or noKeys.
const (
	quarantineLabel = "longshore:quarantine"
	noKeys          = "-"
)

// inventoried finds a principal that an inventory has listed; nil if it is gone, or belongs to
// another incarnation.
func (k *Keeper) inventoried(ctx context.Context, h provider.Holding) (*Found, error) {
	all, err := k.named(ctx, h.Name)
	for _, f := range all {
		if f.of() == h.Tags {
			return &f, nil
		}
	}
	return nil, err
}

// Quarantine implements provider.Quarantiner. It makes the keys of a principal inactive and denies
// it everything, including in sessions that have begun. Before that, it writes a tag that says how
// to undo it.
func (k *Keeper) Quarantine(ctx context.Context, h provider.Holding) error {
	f, err := k.inventoried(ctx, h)
	if err != nil || f == nil {
		return err
	}
	var active []string
	if f.Kind == plan.User {
		keys, err := k.IAM.Keys(ctx, f.Name)
		if err != nil {
			return absentIsFine(err)
		}
		for _, key := range keys {
			if key.Active {
				active = append(active, key.ID)
			}
		}
	}
	if f.Tags[quarantineLabel] == "" {
		mark := label.Label{Name: quarantineLabel, Value: cmp.Or(strings.Join(active, " "), noKeys)}
		if err := k.IAM.SetTags(ctx, f.Kind, f.Name, []label.Label{mark}); err != nil {
			return absentIsFine(err)
		}
	}
	if err := k.IAM.PutPolicy(ctx, f.Kind, f.Name, denyName, plan.DenyAll); err != nil {
		return absentIsFine(err)
	}
	return k.setKeys(ctx, f.Name, active, false)
}

// Release implements provider.Quarantiner. It leaves the principal as it was before the quarantine.
func (k *Keeper) Release(ctx context.Context, h provider.Holding) error {
	f, err := k.inventoried(ctx, h)
	if err != nil || f == nil || f.Tags[quarantineLabel] == "" {
		return err
	}
	if err := k.IAM.DeletePolicy(ctx, f.Kind, f.Name, denyName); absentIsFine(err) != nil {
		return err
	}
	if were := f.Tags[quarantineLabel]; were != noKeys {
		if err := k.setKeys(ctx, f.Name, strings.Fields(were), true); err != nil {
			return err
		}
	}
	return absentIsFine(k.IAM.DropTags(ctx, f.Kind, f.Name, quarantineLabel))
}

func (k *Keeper) setKeys(ctx context.Context, user string, ids []string, active bool) error {
	for _, id := range ids {
		if err := k.IAM.SetKey(ctx, user, id, active); absentIsFine(err) != nil {
			return err
		}
	}
	return nil
}
