package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// A history is one broker that is killed and started again, with the choices of one seed.
type history struct {
	*testing.T
	random *rand.Rand
	data   string
	env    []string
	p      *process
	kills  int
}

// killWithin is the time in which a kill comes after a request was sent: a little longer than an operation takes.
const killWithin = 220 * time.Millisecond

// number reads a setting of the tests from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	return expect.Get(strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise))))(t, name)
}

// restart kills the broker and starts it again on the same data.
func (h *history) restart() {
	h.Helper()
	h.p.kill()
	h.kills++
	h.p = start(h, h.data, h.env...)
}

// request sends as a platform does: while no answer comes, the same again. The broker may be killed at any moment of it.
func (h *history) request(method, path, body string, statuses ...int) answer {
	h.Helper()
	var timer *time.Timer
	killed := make(chan struct{})
	p := h.p
	if h.random.IntN(3) == 0 { // before the answer, or just after it
		timer = time.AfterFunc(time.Duration(h.random.Int64N(int64(10*time.Millisecond))), func() {
			_ = p.cmd.Process.Kill()
			close(killed)
		})
	}
	a, err := send(p.url, method, path, body)
	if timer != nil && !timer.Stop() {
		<-killed
		h.restart()
		if err != nil {
			a, err = send(h.p.url, method, path, body)
		}
	}
	return expect.Get(a, err)(h, method, path).is(h, method+" "+path, statuses...)
}

// batter kills the broker at random moments while an operation runs.
func (h *history) batter() {
	h.Helper()
	for range 1 + h.random.IntN(3) {
		time.Sleep(time.Duration(h.random.Int64N(int64(killWithin)))) // the random moment is the point
		h.restart()
	}
}

// ends requires how the operation with the token ends, and that it is the same one all along.
func (h *history) ends(path, token, want string) {
	h.Helper()
	if state := settled(h, h.p.url, path); state != want {
		h.Fatalf("%s ended %q, want %q", path, state, want)
	}
	if token == "" {
		return
	}
	a, err := send(h.p.url, "GET", path+"/last_operation?operation="+token, "")
	gone := strings.HasPrefix(want, "succeeded") && a.status == 410
	if err != nil || !gone && a.text("state") != want {
		h.Fatalf("the operation %s of %s reads %d %s, want %q: %v", token, path, a.status, a.raw, want, err)
	}
}

// Killed with kill -9 at any moment of any operation, the broker ends it as it was asked, with the token that it gave, and
// nothing is left behind (DEPR-15, DEPR-18, NFR-02). KILLS asks for more, SEED for the same again.
func TestKilledAtAnyMoment(t *testing.T) {
	kills := 80
	if testing.Short() {
		kills = 8
	}
	kills = number(t, "KILLS", kills)
	seed := number(t, "SEED", int(time.Now().UnixNano()%1_000_000))
	const side = 4 // brokers at once
	for n := range side {
		t.Run(fmt.Sprintf("Seed%d", seed+n), func(t *testing.T) {
			t.Parallel()
			h := &history{T: t, random: rand.New(rand.NewPCG(uint64(seed+n), 1)), data: t.TempDir(),
				env: credentials("LONGSHORE_DEMO_DELAY=150ms")}
			h.p = start(t, h.data, h.env...)
			rounds := []func(*history, string){lifecycleRound, overtakingRound, bindingRound}
			for round := 0; h.kills < kills/side; round++ {
				rounds[round%len(rounds)](h, fmt.Sprintf("i-%d", round))
			}
			t.Logf("%d kills; run again with SEED=%d", h.kills, seed)
		})
	}
}

func lifecycleRound(h *history, id string) {
	path := instancePath(id)
	// A repetition after a lost answer may find the instance ready: 200.
	token := h.request("PUT", path+async, provisionBody(planAsync, `{"a":1}`), 202, 200).text("operation")
	h.batter()
	h.ends(path, token, "succeeded")
	token = h.request("PATCH", path+async, `{"service_id":"`+service+`","parameters":{"a":2}}`, 202, 200).text("operation")
	h.batter()
	h.ends(path, token, "succeeded")
	got := must(h, h.p.url, "GET", path, "", 200)
	if parameters, _ := got.body["parameters"].(map[string]any); parameters["a"] != 2.0 {
		h.Fatalf("the update was lost: %s", got.raw)
	}
	token = h.request("DELETE", path+async+"&"+hints(planAsync), "", 202, 410).text("operation")
	h.batter()
	h.ends(path, token, "succeeded")
	must(h, h.p.url, "GET", path, "", 404)
}

// overtakingRound deletes while the provision runs.
func overtakingRound(h *history, id string) {
	path := instancePath(id)
	provision := h.request("PUT", path+async, provisionBody(planAsync, `{"delay_seconds":0.3}`), 202, 200).text("operation")
	if h.random.IntN(2) == 0 {
		h.restart()
	}
	token := h.request("DELETE", path+async+"&"+hints(planAsync), "", 202, 410).text("operation")
	h.batter()
	h.ends(path, token, "succeeded")
	if provision != "" {
		a := must(h, h.p.url, "GET", path+"/last_operation?operation="+provision, "", 200)
		if state := a.text("state"); state == "in progress" {
			h.Fatalf("the overtaken provision reads %s", a.raw)
		}
	}
	must(h, h.p.url, "GET", path, "", 404)
}

// bindingRound binds and unbinds asynchronously, and deletes the instance with a binding still in the making.
func bindingRound(h *history, id string) {
	path, plan := instancePath(id), catalogIDs(h, h.p.url)["async-bind"]
	h.request("PUT", path+async, provisionBody(plan, `{}`), 202, 200)
	h.ends(path, "", "succeeded")
	bind, first, second := planBody(service, plan, ""), bindingPath(id, id+"-b"), bindingPath(id, id+"-c")
	token := h.request("PUT", first+async, bind, 202, 200).text("operation")
	h.batter()
	h.ends(first, token, "succeeded")
	must(h, h.p.url, "GET", first, "", 200)
	token = h.request("DELETE", first+async+"&"+hints(plan), "", 202, 410).text("operation")
	h.batter()
	h.ends(first, token, "succeeded")
	h.request("PUT", second+async, bind, 202, 200)
	token = h.request("DELETE", path+async+"&"+hints(plan), "", 202, 410).text("operation")
	h.batter()
	h.ends(path, token, "succeeded")
	must(h, h.p.url, "GET", second, "", 404)
}
