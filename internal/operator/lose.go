package operator

import (
	"context"
	"fmt"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/vault"
)

// lose takes from the records what is sealed in them and does not open with the
// vault's key. A vault that is out of reach ends it, with nothing taken that it
// could open.
func (r *rebuilding) lose(ctx context.Context, all ledger.Everything) error {
	for _, was := range all.Instances {
		if lost, err := r.lost(ctx, vault.OfInstance(was)); err != nil {
			return err
		} else if len(lost) > 0 {
			if _, err := decide(ctx, func() (Row, error) { return Row{}, r.loseOfInstance(ctx, was.Key) }); err != nil {
				return err
			}
		}
	}
	for _, was := range all.Bindings {
		if lost, err := r.lost(ctx, vault.OfBinding(was)); err != nil {
			return err
		} else if len(lost) > 0 {
			if _, err := decide(ctx, func() (Row, error) { return Row{}, r.loseOfBinding(ctx, was.Key) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost are those of the values that do not open.
func (r *rebuilding) lost(ctx context.Context, values []vault.Value) (map[string]bool, error) {
	lost := map[string]bool{}
	for _, v := range values {
		opens, err := vault.Opens(ctx, r.Vault, v)
		if err != nil {
			return nil, fmt.Errorf("opening what is sealed in the records: %w", err)
		}
		if !opens {
			lost[string(v.Sealed)] = true
		}
	}
	return lost, nil
}

func (r *rebuilding) loseOfInstance(ctx context.Context, key lifecycle.Key) error {
	was, err := r.Records.Instance(ctx, key, r.Now())
	if err != nil {
		return err
	}
	lost, err := r.lost(ctx, vault.OfInstance(was))
	if err != nil || len(lost) == 0 {
		return err
	}
	i, err := was.Lose(func(s lifecycle.Sealed) bool { return lost[string(s)] }, r.Now())
	if err == nil {
		err = r.Records.Commit(ctx, ledger.PutInstance(i))
	}
	if err != nil {
		return err
	}
	if i.LostParameters() && i.State != lifecycle.Deleted {
		r.out.Parameters = append(r.out.Parameters, key.Instance)
	}
	if was.InProgress() && !i.InProgress() {
		r.out.Failed = append(r.out.Failed, key.Instance)
	}
	return nil
}

func (r *rebuilding) loseOfBinding(ctx context.Context, key lifecycle.Key) error {
	was, err := r.Records.Binding(ctx, key, r.Now())
	if err != nil {
		return err
	}
	lost, err := r.lost(ctx, vault.OfBinding(was))
	if err != nil || len(lost) == 0 {
		return err
	}
	b, err := was.Lose(func(s lifecycle.Sealed) bool { return lost[string(s)] }, r.Now())
	if err == nil {
		err = r.Records.Commit(ctx, ledger.PutBinding(b))
	}
	if err != nil {
		return err
	}
	name := key.Instance + "/" + key.Binding
	if was.Grant != nil && b.Grant == nil {
		r.out.Rotate = append(r.out.Rotate, name)
	}
	if was.InProgress() && !b.InProgress() {
		r.out.Failed = append(r.out.Failed, name)
	}
	return nil
}
