package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"time"

	"github.com/longshore/longshore/kit/conformance"
)

// tiny is a broker with one plan that makes nothing.
func tiny() http.Handler {
	var mu sync.Mutex
	made := map[string]bool{}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v2/catalog", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"services":[{"id":"s1","name":"nothing","description":"Nothing","bindable":false,`+
			`"plans":[{"id":"p1","name":"free","description":"Free"}]}]}`)
	})
	routes.HandleFunc("PUT /v2/service_instances/{id}", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Service_ID, Plan_ID string }
		if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Service_ID != "s1" || asked.Plan_ID != "p1" {
			http.Error(w, `{"description":"service_id and plan_id are those of the catalog"}`, http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !made[r.PathValue("id")] {
			made[r.PathValue("id")] = true
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = fmt.Fprint(w, `{}`)
	})
	routes.HandleFunc("DELETE /v2/service_instances/{id}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !made[r.PathValue("id")] {
			w.WriteHeader(http.StatusGone)
		}
		delete(made, r.PathValue("id"))
		_, _ = fmt.Fprint(w, `{}`)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, password, _ := r.BasicAuth(); password != "an example's" {
			http.Error(w, `{"description":"unknown user or password"}`, http.StatusUnauthorized)
			return
		}
		routes.ServeHTTP(w, r)
	})
}

// Any broker's own tests can ask it what its version of the specification asks, or a part of that.
func ExampleRun() {
	server := httptest.NewServer(tiny())
	defer server.Close()
	report, err := conformance.Run(context.Background(),
		conformance.Target{URL: server.URL, Username: "platform", Password: "an example's"},
		conformance.Options{Now: time.Now, Minor: 17, Only: regexp.MustCompile(`^(AUTH|CAT)-`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Results {
		if r.Outcome == conformance.Failed && r.Level == conformance.Must {
			fmt.Println(r.ID, r.Level, r.Title, r.Source)
		}
	}
	fmt.Println("conforms:", report.Conforms())
	// Output: conforms: true
}
