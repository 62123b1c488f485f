// Package small makes a broker as a team might write it with brokerapi in an afternoon: two
// offerings in memory, with synchronous and asynchronous plans. It is a subject for the conformance
// kit. Wherever brokerapi has an answer, that is the broker's answer.
package small

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"code.cloudfoundry.org/brokerapi/v13"
	"code.cloudfoundry.org/brokerapi/v13/domain"
	"code.cloudfoundry.org/brokerapi/v13/domain/apiresponses"
)

// New makes the handler. Asynchronous operations take as long as the delay.
func New(username, password string, delay time.Duration, log *slog.Logger) http.Handler {
	b := &broker{delay: delay, instances: map[string]*instance{}}
	return brokerapi.New(b, log, brokerapi.BrokerCredentials{Username: username, Password: password})
}

// Ids of the catalog.
const (
	database = "6a7d1f43-3f0c-4a3e-9c1b-0f8c6a3b0001"
	syncPlan = "6a7d1f43-3f0c-4a3e-9c1b-0f8c6a3b0002"
	slowPlan = "6a7d1f43-3f0c-4a3e-9c1b-0f8c6a3b0003"
	queue    = "6a7d1f43-3f0c-4a3e-9c1b-0f8c6a3b0004"
	onlyPlan = "6a7d1f43-3f0c-4a3e-9c1b-0f8c6a3b0005"
)

func services() []domain.Service {
	return []domain.Service{{
		ID: database, Name: "database", Description: "A database", Bindable: true, PlanUpdatable: true,
		InstancesRetrievable: true, BindingsRetrievable: true,
		Plans: []domain.ServicePlan{
			{ID: syncPlan, Name: "small", Description: "Ready at once",
				MaintenanceInfo: &domain.MaintenanceInfo{Version: "1.0.0"}},
			{ID: slowPlan, Name: "large", Description: "Ready after a while"},
		},
	}, {
		ID: queue, Name: "queue", Description: "A queue",
		Plans: []domain.ServicePlan{{ID: onlyPlan, Name: "only", Description: "The only plan"}},
	}}
}

type broker struct {
	delay time.Duration

	mu        sync.Mutex
	instances map[string]*instance
}

type instance struct {
	details   domain.ProvisionDetails
	operation operation
	bindings  map[string]*binding
}

type binding struct {
	details     domain.BindDetails
	credentials map[string]string
}

// An operation is the last operation of an instance.
type operation struct {
	token    string
	ends     time.Time
	deletion bool
}

func (o operation) runs() bool { return time.Now().Before(o.ends) }

func (b *broker) begin(deletion bool) operation {
	return operation{rand.Text(), time.Now().Add(b.delay), deletion}
}

// find returns an existing instance; it removes one whose deletion has ended.
func (b *broker) find(id string) (*instance, bool) {
	i, ok := b.instances[id]
	if ok && i.operation.deletion && !i.operation.runs() {
		delete(b.instances, id)
		return nil, false
	}
	return i, ok
}

func (b *broker) Services(context.Context) ([]domain.Service, error) { return services(), nil }

func (b *broker) Provision(_ context.Context, id string, details domain.ProvisionDetails,
	asyncAllowed bool) (domain.ProvisionedServiceSpec, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, ok := b.find(id); ok {
		switch {
		case i.operation.deletion:
			return domain.ProvisionedServiceSpec{}, apiresponses.ErrConcurrentInstanceAccess
		case !same(i.details, details):
			return domain.ProvisionedServiceSpec{}, apiresponses.ErrInstanceAlreadyExists
		case i.operation.runs():
			return domain.ProvisionedServiceSpec{IsAsync: true, OperationData: i.operation.token}, nil
		}
		return domain.ProvisionedServiceSpec{AlreadyExists: true}, nil
	}
	made := &instance{details: details, bindings: map[string]*binding{}}
	if details.PlanID == slowPlan {
		if !asyncAllowed {
			return domain.ProvisionedServiceSpec{}, apiresponses.ErrAsyncRequired
		}
		made.operation = b.begin(false)
	}
	b.instances[id] = made
	return domain.ProvisionedServiceSpec{IsAsync: details.PlanID == slowPlan, OperationData: made.operation.token}, nil
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func (b *broker) Deprovision(_ context.Context, id string, details domain.DeprovisionDetails,
	asyncAllowed bool) (domain.DeprovisionServiceSpec, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.find(id)
	switch {
	case !ok:
		return domain.DeprovisionServiceSpec{}, apiresponses.ErrInstanceDoesNotExist
	case i.operation.runs() && i.operation.deletion:
		return domain.DeprovisionServiceSpec{IsAsync: true, OperationData: i.operation.token}, nil
	case i.operation.runs():
		return domain.DeprovisionServiceSpec{}, apiresponses.ErrConcurrentInstanceAccess
	case i.details.PlanID != slowPlan:
		delete(b.instances, id)
		return domain.DeprovisionServiceSpec{}, nil
	case !asyncAllowed:
		return domain.DeprovisionServiceSpec{}, apiresponses.ErrAsyncRequired
	}
	i.operation = b.begin(true)
	return domain.DeprovisionServiceSpec{IsAsync: true, OperationData: i.operation.token}, nil
}

var errNotFound = apiresponses.NewFailureResponseBuilder(apiresponses.ErrInstanceDoesNotExist, http.StatusNotFound,
	"instance-not-found").WithEmptyResponse().Build()

func (b *broker) GetInstance(_ context.Context, id string, _ domain.FetchInstanceDetails) (domain.GetInstanceDetailsSpec, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.find(id)
	if !ok || i.operation.runs() {
		return domain.GetInstanceDetailsSpec{}, errNotFound
	}
	return domain.GetInstanceDetailsSpec{ServiceID: i.details.ServiceID, PlanID: i.details.PlanID,
		Parameters: i.details.RawParameters}, nil
}

func (b *broker) Update(_ context.Context, id string, details domain.UpdateDetails, _ bool) (domain.UpdateServiceSpec, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.find(id)
	switch {
	case !ok:
		return domain.UpdateServiceSpec{}, errNotFound
	case i.operation.runs():
		return domain.UpdateServiceSpec{}, apiresponses.ErrConcurrentInstanceAccess
	case details.PlanID != "" && details.PlanID != syncPlan && details.PlanID != slowPlan:
		return domain.UpdateServiceSpec{}, apiresponses.ErrPlanChangeNotSupported
	}
	if details.PlanID != "" {
		i.details.PlanID = details.PlanID
	}
	if details.RawParameters != nil {
		i.details.RawParameters = details.RawParameters
	}
	return domain.UpdateServiceSpec{}, nil
}

func (b *broker) LastOperation(_ context.Context, id string, _ domain.PollDetails) (domain.LastOperation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.instances[id]
	switch {
	case !ok:
		return domain.LastOperation{}, errNotFound
	case i.operation.runs():
		return domain.LastOperation{State: domain.InProgress}, nil
	case i.operation.deletion:
		return domain.LastOperation{}, apiresponses.ErrInstanceDoesNotExist
	}
	return domain.LastOperation{State: domain.Succeeded}, nil
}

func (b *broker) Bind(_ context.Context, id, bindingID string, details domain.BindDetails, _ bool) (domain.Binding, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.find(id)
	switch {
	case !ok:
		return domain.Binding{}, errNotFound
	case i.operation.runs():
		return domain.Binding{}, apiresponses.ErrConcurrentInstanceAccess
	}
	if made, ok := i.bindings[bindingID]; ok {
		if !same(made.details, details) {
			return domain.Binding{}, apiresponses.ErrBindingAlreadyExists
		}
		return domain.Binding{AlreadyExists: true, Credentials: made.credentials}, nil
	}
	made := &binding{details, map[string]string{"username": "u" + rand.Text(), "password": rand.Text()}}
	i.bindings[bindingID] = made
	return domain.Binding{Credentials: made.credentials}, nil
}

func (b *broker) Unbind(_ context.Context, id, bindingID string, _ domain.UnbindDetails, _ bool) (domain.UnbindSpec, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.find(id)
	if !ok || i.bindings[bindingID] == nil {
		return domain.UnbindSpec{}, apiresponses.ErrBindingDoesNotExist
	}
	delete(i.bindings, bindingID)
	return domain.UnbindSpec{}, nil
}

func (b *broker) GetBinding(_ context.Context, id, bindingID string,
	_ domain.FetchBindingDetails) (domain.GetBindingSpec, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.find(id)
	if !ok || i.bindings[bindingID] == nil {
		return domain.GetBindingSpec{}, apiresponses.ErrBindingNotFound
	}
	made := i.bindings[bindingID]
	return domain.GetBindingSpec{Credentials: made.credentials, Parameters: made.details.RawParameters}, nil
}

func (b *broker) LastBindingOperation(_ context.Context, id, bindingID string,
	_ domain.PollDetails) (domain.LastOperation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, ok := b.find(id); !ok || i.bindings[bindingID] == nil {
		return domain.LastOperation{}, apiresponses.ErrBindingNotFound
	}
	return domain.LastOperation{State: domain.Succeeded}, nil
}
