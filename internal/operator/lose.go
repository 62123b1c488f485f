package operator

import (
	"context"
	"fmt"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/vault"
)

// lose drops what is sealed in the records and does not open with the vault's key. If
// the vault cannot be reached it ends, and has dropped nothing that would open.
func (r *rebuilding) lose(ctx context.Context, all ledger.Everything) error {
	for _, was := range all.Records {
		if lost, err := r.lost(ctx, vault.Of(was)); err != nil {
			return err
		} else if len(lost) > 0 {
			if _, err := decide(ctx, func() (Row, error) { return Row{}, r.loseOf(ctx, was.Key) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost are the values that do not open.
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

func (r *rebuilding) loseOf(ctx context.Context, key lifecycle.Key) error {
	was, err := r.Records.Record(ctx, key, r.Now())
	if err != nil {
		return err
	}
	lost, err := r.lost(ctx, vault.Of(was))
	if err != nil || len(lost) == 0 {
		return err
	}
	is, err := was.Lose(func(s lifecycle.Sealed) bool { return lost[string(s)] }, r.Now())
	if err == nil {
		err = r.Records.Commit(ctx, ledger.Put(is))
	}
	if err != nil {
		return err
	}
	if !key.IsBinding() && is.LostParameters() && is.State != lifecycle.Deleted {
		r.out.Parameters = append(r.out.Parameters, nameOf(key))
	}
	if was.Grant != nil && is.Grant == nil {
		r.out.Rotate = append(r.out.Rotate, nameOf(key))
	}
	if was.InProgress() && !is.InProgress() {
		r.out.Failed = append(r.out.Failed, nameOf(key))
	}
	return nil
}

// nameOf is the name by which a rebuilt record is listed.
func nameOf(key lifecycle.Key) string {
	if key.IsBinding() {
		return key.Instance + "/" + key.Binding
	}
	return key.Instance
}
