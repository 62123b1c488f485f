package secrets_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/hosted/secrets"
)

// One secret that cannot be read keeps the provider from that target alone: an inventory and a first
// step are given all targets.
func TestOneUnreadableSecret(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "locked") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","Message":"may not"}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"SecretString":%q}`, `{"host":"h","username":"u","password":"p","sslmode":"disable"}`)
	}))
	defer server.Close()
	arns := secrets.ARNs{}
	for _, name := range []string{"a", "b", "locked"} {
		arns[name] = "arn:aws:secretsmanager:eu-west-1:111111111111:secret:" + name + "-abcdef"
	}
	client := secretsmanager.New(secretsmanager.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{},
	})
	reader := secrets.NewReader("valkey", hosted.AddressForm{Port: 1}, arns, client, time.Now)
	for _, targets := range [][]provider.Target{nil, {{}}} {
		raw, err := reader.LookUp(t.Context(), targets)
		var got hosted.Accesses
		if err != nil || json.Unmarshal(raw, &got) != nil {
			t.Fatalf("%s %v", raw, err)
		}
		if len(got) != 3 || got["a"].Host != "h" || got["b"].Password != "p" || got["b"].Unreadable != "" ||
			got["locked"].Host != "" || !strings.Contains(got["locked"].Unreadable, "may not") {
			t.Errorf("%s", raw)
		}
	}
	raw, err := reader.LookUp(t.Context(), []provider.Target{{Name: "locked"}})
	if err == nil || !strings.Contains(err.Error(), `the secret of target "locked"`) {
		t.Errorf("the target by name: %s %v", raw, err)
	}
}
