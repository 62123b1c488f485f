// Package theirs makes the broker that Longshore is compared with: the handler of brokerapi over
// the minimum that can be behind it, a map in memory.
package theirs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"code.cloudfoundry.org/brokerapi/v13"
	"code.cloudfoundry.org/brokerapi/v13/domain"
	"code.cloudfoundry.org/brokerapi/v13/domain/apiresponses"

	"github.com/longshore/longshore/bench/wire"
)

// New makes the handler. The catalog is the body of an answer to GET /v2/catalog.
func New(catalog []byte, log *slog.Logger) (http.Handler, error) {
	var offered apiresponses.CatalogResponse
	if err := json.Unmarshal(catalog, &offered); err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	b := &broker{services: offered.Services, instances: map[string]instance{}}
	return brokerapi.New(b, log, brokerapi.BrokerCredentials{Username: wire.Username, Password: wire.Password}), nil
}

// A broker has the methods that the measured requests need; the other methods are those of a nil
// interface, and panic.
type broker struct {
	domain.ServiceBroker
	services []domain.Service

	mu        sync.Mutex
	instances map[string]instance
}

type instance struct {
	details   domain.ProvisionDetails
	operation string
}

func (b *broker) Services(context.Context) ([]domain.Service, error) { return b.services, nil }

func (b *broker) Provision(_ context.Context, id string, details domain.ProvisionDetails,
	asyncAllowed bool) (domain.ProvisionedServiceSpec, error) {
	if !asyncAllowed {
		return domain.ProvisionedServiceSpec{}, apiresponses.ErrAsyncRequired
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.instances[id]; ok {
		return domain.ProvisionedServiceSpec{}, apiresponses.ErrInstanceAlreadyExists
	}
	made := instance{details: details, operation: rand.Text()}
	b.instances[id] = made
	return domain.ProvisionedServiceSpec{IsAsync: true, OperationData: made.operation}, nil
}

func (b *broker) LastOperation(_ context.Context, id string, _ domain.PollDetails) (domain.LastOperation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.instances[id]; !ok {
		return domain.LastOperation{}, apiresponses.ErrInstanceDoesNotExist
	}
	return domain.LastOperation{State: domain.InProgress, Description: "The provision was accepted and is about to start."}, nil
}
