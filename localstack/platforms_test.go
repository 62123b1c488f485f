//go:build deployed

package localstack_test

import (
	"fmt"
	"os/exec"
	"regexp"
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
	return longshoreOn(t, theStack, args...)
}

func longshoreOn(t *testing.T, stack string, args ...string) string {
	t.Helper()
	args = append(args, "--stack", stack)
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	expect.OK(t, err, "longshore", args, string(out))
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

// told is a platform as a command tells of it.
func told(t *testing.T, url, out string) platform {
	t.Helper()
	p := platform{url, said(t, out, `user +(\S+)`), said(t, out, `password +(\S+)`)}
	keep("a platform's password", p.password)
	return p
}

// login is the status of a request for the catalog.
func (p platform) login(t *testing.T) int {
	t.Helper()
	return p.ask(t, "GET", "/v2/catalog", "").status
}

// A second platform comes, is apart from the first, changes its password under load without a refusal, and goes.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	first := newPlatform(t)
	name := id("cf")
	second := told(t, first.url+"/"+name, longshore(t, "platform", "add", name, "--path", "/"+name, "--offering", "demo"))
	// Each process of the function learns of it by itself.
	time.Sleep(platforms.Spread)
	// It sees no more than its part.
	expect.Never(t, "its catalog", second.call(t, "GET", "/v2/catalog", "", 200).raw, "demo-other")
	list := longshore(t, "platform", "list")
	expect.Says(t, "the list", list, name)
	expect.Never(t, "the list", list, second.password)
	lost := platform{first.url, second.username, second.password}
	lost.call(t, "GET", "/v2/catalog", "", 404)

	// The same id, twice.
	instance := instancePath(id("i"))
	first.call(t, "PUT", instance, provision(planSync), 201)
	second.call(t, "GET", instance, "", 404)
	accepted := second.call(t, "PUT", instance+"?accepts_incomplete=true", provision(planAsync), 202)
	expect.Says(t, "NFR-04: Location", accepted.header.Get("Location"), "/"+name+"/operations/")
	first.call(t, "GET", "/operations/"+accepted.text("operation"), "", 404)
	expect.Same(t, "provisioning ended", "succeeded", second.settled(t, instance, accepted.text("operation")))
	second.ends(t, "DELETE", instance, hints(planAsync), "")
	first.call(t, "GET", instance, "", 200)
	first.deletes(t, instance)

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
	expect.Same(t, "so many requests were refused while the password was changed", 0, refused)

	longshore(t, "platform", "remove", name)
	time.Sleep(platforms.Spread)
	expect.Same(t, fmt.Sprintf("%v after its removal it is answered", platforms.Spread), 401, rotated.login(t))
}
