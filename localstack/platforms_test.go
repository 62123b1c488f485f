//go:build deployed

package localstack_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

// program is the command line, which make has built.
const program = "../bin/longshore"

// longshore runs the command line against the stack, and gives what it says.
func longshore(t *testing.T, args ...string) string {
	t.Helper()
	return longshoreOn(t, cmp.Or(os.Getenv("STACK"), "Longshore"), args...)
}

func longshoreOn(t *testing.T, stack string, args ...string) string {
	t.Helper()
	args = append(args, "--stack", stack)
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("longshore %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func said(t *testing.T, out, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("nothing like %q is said:\n%s", pattern, out)
	}
	return found[1]
}

// login is the status of a request for the catalog.
func (p platform) login(t *testing.T) int {
	t.Helper()
	request := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/v2/catalog", nil))(t)
	request.SetBasicAuth(p.username, p.password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	response := expect.Get((&http.Client{Timeout: callLimit}).Do(request))(t)
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

// A second platform comes, is apart from the first, changes its password under load without a refusal, and goes.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	first := newPlatform(t)
	name := id("cf")
	added := longshore(t, "platform", "add", name, "--path", "/"+name, "--offering", "demo")
	second := platform{first.url + "/" + name, said(t, added, `user +(\S+)`), said(t, added, `password +(\S+)`)}
	keep("a platform's password", second.password)
	// Each process of the function learns of it by itself.
	time.Sleep(platforms.Spread)
	if got := second.login(t); got != 200 {
		t.Fatalf("after %v the new platform is answered %d", platforms.Spread, got)
	}
	if out := longshore(t, "platform", "list"); !strings.Contains(out, name) || strings.Contains(out, second.password) {
		t.Errorf("the list does not name it, or tells its password:\n%s", out)
	}
	if a := second.call(t, "GET", "/v2/catalog", "", 200); strings.Contains(a.raw, "demo-other") {
		t.Error("it sees more than its part")
	}
	lost := platform{first.url, second.username, second.password}
	lost.call(t, "GET", "/v2/catalog", "", 404)

	// The same id, twice.
	instance := instancePath(id("i"))
	first.call(t, "PUT", instance, provision(planSync), 201)
	second.call(t, "GET", instance, "", 404)
	accepted := second.call(t, "PUT", instance+"?accepts_incomplete=true", provision(planAsync), 202)
	where := accepted.header.Get("Location")
	expect.Says(t, "NFR-04: Location", where, "/"+name+"/operations/")
	first.call(t, "GET", "/operations/"+accepted.text("operation"), "", 404)
	expect.Same(t, "provisioning ended", "succeeded", second.settled(t, instance, accepted.text("operation")))
	second.settled(t, instance, second.call(t, "DELETE", instance+"?accepts_incomplete=true&"+hints(planAsync), "",
		202).text("operation"))
	first.call(t, "GET", instance, "", 200)
	first.call(t, "DELETE", instance+"?"+hints(planSync), "", 200)

	// A new password, while the old one is in use.
	stop, refused := make(chan struct{}), 0
	var load sync.WaitGroup
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if second.login(t) != 200 {
				refused++
			}
		}
	})
	rotated := second
	// The command shows the new password when every process knows it.
	rotated.password = said(t, longshore(t, "platform", "rotate", name, "--overlap", "1h"), `: (\S+)\n`)
	keep("a new password", rotated.password)
	for range 20 {
		expect.Same(t, "the new password is answered", 200, rotated.login(t))
	}
	close(stop)
	load.Wait()
	if refused > 0 {
		t.Errorf("%d requests were refused while the password was changed", refused)
	}

	longshore(t, "platform", "remove", name)
	time.Sleep(platforms.Spread)
	expect.Same(t, fmt.Sprintf("%v after its removal it is answered", platforms.Spread), 401, rotated.login(t))
}
