package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// lose drops the sealed values of the records that do not open with the vault's key. If the vault
// cannot be reached, it stops, and has dropped nothing that would open. It notes everything that is
// lost, whether by this run or by an earlier one.
func (r *rebuilding) lose(ctx context.Context, records []lifecycle.Record) error {
	for _, is := range records {
		lost, err := r.lost(ctx, vault.Of(is))
		if err == nil && len(lost) > 0 {
			is, err = acts.Decide(ctx, func() (lifecycle.Record, error) { return r.loseOf(ctx, is.Key) })
		}
		if err != nil {
			return err
		}
		r.note(is)
	}
	return nil
}

// note adds to the result what a record has lost.
func (r *rebuilding) note(is lifecycle.Record) {
	note := func(lost bool, list *[]string, what string) {
		if !lost {
			return
		}
		*list = append(*list, nameOf(is.Key))
		if r.Lost != nil {
			r.Lost(what + " " + nameOf(is.Key))
		}
	}
	note(!is.IsBinding() && is.Exists() && is.LostParameters(), &r.out.Parameters, "the parameters of instance")
	note(is.LostGrant(), &r.out.Rotate, "the credentials of binding")
	note(is.Exists() && is.LostWork(), &r.out.Failed, "the request of this operation, which has failed:")
}

// lost returns the values that do not open.
func (r *rebuilding) lost(ctx context.Context, values []vault.Value) (map[string]bool, error) {
	lost := map[string]bool{}
	for _, v := range values {
		if _, err := r.Vault.Open(ctx, v.Label, v.Sealed); errors.Is(err, vault.ErrSealed) {
			lost[string(v.Sealed)] = true
		} else if err != nil {
			return nil, fmt.Errorf("opening what is sealed in the records: %w", err)
		}
	}
	return lost, nil
}

// loseOf drops the values of one record that do not open, and returns the record as it is afterwards.
func (r *rebuilding) loseOf(ctx context.Context, key lifecycle.Key) (lifecycle.Record, error) {
	was, err := r.read(ctx, key)
	if err != nil {
		return was, err
	}
	lost, err := r.lost(ctx, vault.Of(was))
	if err != nil || len(lost) == 0 {
		return was, err
	}
	is, err := was.Lose(func(s lifecycle.Sealed) bool { return lost[string(s)] }, r.Now())
	if err == nil {
		err = r.Records.Commit(ctx, ledger.Put(is))
	}
	return is, err
}

// nameOf returns the name by which a rebuilt record is listed.
func nameOf(key lifecycle.Key) string {
	if key.IsBinding() {
		return key.Instance + "/" + key.Binding
	}
	return key.Instance
}
