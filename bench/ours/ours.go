// Package ours makes Longshore's handler for the benchmark, over a store that the caller chooses.
// Nothing drives the operations: they stay in progress, as those of the other broker do.
package ours

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore/longshore/bench/wire"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/offerings"
)

// New makes the handler.
func New(s store.Store, log *slog.Logger) (*osb.Server, error) {
	shipped, err := catalog.Open(offerings.Catalog)
	if err != nil {
		return nil, fmt.Errorf("loading the catalog: %w", err)
	}
	offered := shipped.Without([]string{"cloudformation", "postgres", "mariadb", "valkey"}) // these need AWS or a server
	key, err := vault.NewLocal(secret())
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	records := ledger.New(s, id)
	b := broker.New(broker.Options{
		Records: records, Catalog: offered, Vault: key, Table: datakey.New(records, key), Engine: idle{},
		Now: now, NewID: id, NewSecret: secret, Log: log,
		SynchronousWait: 15 * time.Second, OperationTimeout: 24 * time.Hour,
	})
	registry := platforms.Registry{Platforms: []platforms.Platform{{
		ID: platforms.Default, Name: platforms.Default,
		Credential: platforms.Credential{Username: wire.Username, Password: wire.Password},
	}}}
	known, err := platforms.NewKept(context.Background(),
		func(context.Context) (platforms.Registry, error) { return registry, nil }, now, log)
	if err != nil {
		return nil, fmt.Errorf("making the platforms: %w", err)
	}
	return osb.New(osb.Options{
		Broker: b, Platforms: known, Offerings: offered.Offerings, Now: now, NewID: id, Log: log,
	}), nil
}

// idle is a workflow.Engine that never takes a step.
type idle struct{}

func (idle) Start(context.Context, workflow.Ref) error  { return nil }
func (idle) Finish(context.Context, workflow.Ref) error { return nil }

func now() time.Time { return time.Now().UTC() }

// id and secret work as in the product.
func id() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func secret() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return b
}
