//go:build deployed

package localstack_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

// script runs a command line of bash in this folder for a stack, and gives what it prints.
func script(ctx context.Context, t *testing.T, stack, line, more string) string {
	t.Helper()
	c := exec.CommandContext(ctx, "bash", "-euc", line)
	c.Env = append(os.Environ(), "STACK="+stack, "CONTEXT="+more)
	var diagnostics strings.Builder
	c.Stderr = &diagnostics
	out, err := c.Output()
	expect.OK(t, err, line, stack, string(out), diagnostics.String())
	return string(out)
}

// brokerOf is the stack's broker, as the default platform reaches it.
func brokerOf(t *testing.T, stack string) platform {
	t.Helper()
	out := script(t.Context(), t, stack,
		`line=$(bash env.sh); eval "$line"; printf '%s\n' "$BROKER_URL" "$BROKER_USERNAME" "$BROKER_PASSWORD"`, "")
	words := strings.Split(out, "\n")
	if len(words) < 3 {
		t.Fatal("where the broker is, is not said")
	}
	p := platform{words[0], words[1], words[2]}
	keep("the default platform's password", p.password)
	return p
}

// bound provisions and binds, and gives the credentials.
func (p platform) bound(t *testing.T, instance, binding string) string {
	t.Helper()
	path := instancePath(instance)
	p.call(t, "PUT", path, provision(planSync), 201)
	return credentialsOf(t, p.call(t, "PUT", path+"/service_bindings/"+binding, bind(service, planSync), 201))
}

func credentialsOf(t *testing.T, a answer) string {
	t.Helper()
	raw, err := json.Marshal(a.body["credentials"])
	if err != nil || string(raw) == "null" {
		t.Fatalf("no credentials: %s", a.raw)
	}
	return string(raw)
}

// knows requires that the platform's instance and binding are as they were.
func (p platform) knows(t *testing.T, instance, binding, credentials string) {
	t.Helper()
	path := instancePath(instance)
	p.call(t, "GET", path, "", 200)
	if credentialsOf(t, p.call(t, "GET", path+"/service_bindings/"+binding, "", 200)) != credentials {
		t.Error("the binding has other credentials")
	}
}

// forgets deletes the binding, and then the instance.
func (p platform) forgets(t *testing.T, instance, binding string) {
	t.Helper()
	path := instancePath(instance)
	p.deletes(t, path+"/service_bindings/"+binding, path)
	p.call(t, "GET", path, "", 404)
}

// A stack that goes on with what one that was removed has left knows every platform, instance and binding again: by the
// secret that was kept, and where that is lost by the platforms' ids.
func TestANewStackGoesOnWithWhatWasKept(t *testing.T) {
	t.Parallel()
	stack := id("Kept")
	t.Cleanup(func() { script(context.Background(), t, stack, "bash destroy.sh", "") })
	script(t.Context(), t, stack, "bash deploy.sh", "")
	first := brokerOf(t, stack)
	second := told(t, first.url, longshoreOn(t, stack, "platform", "add", "cf-eu"))
	secondID := said(t, longshoreOn(t, stack, "platform", "list"), `cf-eu +(p-\S+)`)
	time.Sleep(platforms.Spread) // each process of the function learns of it by itself
	ofFirst, ofSecond := first.bound(t, "i", "b-1"), second.bound(t, "i", "b-2")

	kept := script(t.Context(), t, stack, `go run -C ../infra ./deployed kept --stack "$STACK"`, "")
	goOn := said(t, kept, `CONTEXT="([^"]+)"`)
	script(t.Context(), t, stack, "bash destroy.sh", "")

	script(t.Context(), t, stack, "bash deploy.sh", goOn)
	now := brokerOf(t, stack)
	if now.url == first.url {
		t.Fatal("the new stack is the old one: the test proves nothing")
	}
	if now.username != first.username || now.password != first.password {
		t.Error("the default platform has another login than before")
	}
	first.url, second.url = now.url, now.url
	first.knows(t, "i", "b-1", ofFirst)
	second.knows(t, "i", "b-2", ofSecond)
	first.forgets(t, "i", "b-1")
	second.knows(t, "i", "b-2", ofSecond)

	// The secret is lost: there is another one, with a new login. On AWS its name ends with what CloudFormation chooses at
	// random; MiniStack chooses the same again, and puts it in the place of the one that was kept.
	withoutSecret, _, _ := strings.Cut(goOn, " -c secret=")
	script(t.Context(), t, stack, "bash deploy.sh", withoutSecret)
	other := brokerOf(t, stack)
	if other.password == first.password {
		t.Fatal("the secret is not lost: the test proves nothing")
	}
	returned := told(t, other.url, longshoreOn(t, stack, "platform", "add", "cf-eu", "--id", secondID))
	time.Sleep(platforms.Spread)
	other.call(t, "GET", instancePath("i"), "", 404) // the first platform's was deleted
	returned.knows(t, "i", "b-2", ofSecond)
	returned.forgets(t, "i", "b-2")
}
