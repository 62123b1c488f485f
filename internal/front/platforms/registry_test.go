package platforms_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func login(username, password string) platforms.Credential {
	return platforms.Credential{Username: username, Password: password}
}

func two(t *testing.T) platforms.Registry {
	t.Helper()
	return expect.Get(one(login("broker", "first")).Add(platforms.Platform{Name: "cf-eu", Path: "/cf-eu",
		Credential: login("cf-eu", "second"), Offerings: []string{"demo/sync"}}, "p-1", epoch))(t)
}

// A document that only holds a user name and a password is a whole one: that is what a deployment makes.
func TestDocuments(t *testing.T) {
	r := expect.Get(platforms.Decode([]byte(`{"username":"broker","password":"first"}`)))(t)
	expect.Same(t, "the registry", one(login("broker", "first")), r)
	many := expect.Get(two(t).Rotate("cf-eu", "third", epoch, time.Hour))(t)
	raw := expect.Get(many.Encode())(t)
	if !strings.HasPrefix(string(raw), `{"username":"broker","password":"first",`) {
		t.Errorf("the default platform does not stand by itself: %s", raw)
	}
	expect.Same(t, "the registry", many, expect.Get(platforms.Decode(raw))(t))
}

func TestDamagedDocuments(t *testing.T) {
	platform := func(members string) string {
		return `{"username":"broker","password":"canary-3f","platforms":[{` + members + `}]}`
	}
	for name, raw := range map[string]string{
		"NoJSON":     `canary-3f`,
		"Null":       `null`,
		"List":       `["canary-3f"]`,
		"NoPassword": `{"username":"canary-3f"}`,
		"NoID":       platform(`"name":"a","username":"a","password":"canary-3f"`),
		"NoName":     platform(`"id":"a","username":"a","password":"canary-3f"`),
		"SameID":     platform(`"id":"default","name":"a","username":"a","password":"canary-3f"`),
		"SameName":   platform(`"id":"a","name":"default","username":"a","password":"canary-3f"`),
		"SameUser":   platform(`"id":"a","name":"a","username":"broker","password":"canary-3f"`),
		"Colon":      platform(`"id":"a","name":"a","username":"a:b","password":"canary-3f"`),
		"Path":       platform(`"id":"a","name":"a","username":"a","password":"canary-3f","path":"/v2"`),
	} {
		if _, err := platforms.Decode([]byte(raw)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*platforms.Platform)
		want   string
	}{
		"Name":     {func(p *platforms.Platform) { p.Name = "Not Valid" }, "small letters"},
		"Path":     {func(p *platforms.Platform) { p.Path = "/a/b" }, "path"},
		"Reserved": {func(p *platforms.Platform) { p.Path = "/operations" }, "path"},
		"Exists":   {func(p *platforms.Platform) { p.Name = "cf-eu" }, "exists"},
		"Default":  {func(p *platforms.Platform) { p.Name = "default" }, "exists"},
		"User":     {func(p *platforms.Platform) { p.Username = "broker" }, "user name"},
		"ID":       {func(p *platforms.Platform) { p.ID = "P#1" }, "id \"P#1\" is not valid"},
		"LongID":   {func(p *platforms.Platform) { p.ID = strings.Repeat("p", 41) }, "is not valid"},
		"TakenID":  {func(p *platforms.Platform) { p.ID = "p-1" }, `id "p-1" is that of platform "cf-eu"`},
		"First":    {func(p *platforms.Platform) { p.ID = platforms.Default }, `id "default" is that of platform "default"`},
	} {
		r, p := two(t), platforms.Platform{Name: "korifi", Credential: login("korifi", "x")}
		tc.change(&p)
		expect.Says(t, name, fmt.Sprint(expect.Err(r.Add(p, "p-2", epoch))), tc.want)
		expect.Same(t, name+": the registry", two(t), r)
	}
}

// A removed platform that comes back owns what it made; no other platform does.
func TestRemoveKeepsTheID(t *testing.T) {
	r := expect.Get(two(t).Remove("cf-eu", epoch))(t)
	if id, ok := kept(t, r).Authenticate("cf-eu", "second"); ok {
		t.Errorf("a removed platform is let in: %+v", id)
	}
	if _, err := r.Remove("cf-eu", epoch); err == nil {
		t.Error("it was removed twice")
	}
	if _, err := r.Rotate("cf-eu", "x", epoch, 0); err == nil {
		t.Error("a removed platform has a new password")
	}
	expect.Says(t, "people who are to sign on by the login of a removed platform",
		fmt.Sprint(expect.Err(r.WithSignOn("cf-eu", &platforms.SignOn{}))), "platform add cf-eu")
	for name, p := range map[string]platforms.Platform{
		"add it again under that name": {ID: "p-1", Name: "korifi", Credential: login("korifi", "new")},
		`with its id "p-1"`:            {ID: "p-8", Name: "cf-eu", Credential: login("cf-eu", "new")},
	} {
		expect.Says(t, p.Name+" with the id "+p.ID, fmt.Sprint(expect.Err(r.Add(p, "p-9", epoch))), name)
	}
	back := expect.Get(r.Add(platforms.Platform{Name: "cf-eu", Credential: login("cf-eu", "new")}, "p-9", epoch))(t)
	// A registry that was lost gets a platform back under the id that its records have.
	lost := expect.Get(one(login("broker", "first")).Add(platforms.Platform{ID: "p-1", Name: "cf-eu",
		Credential: login("cf-eu", "new")}, "p-9", epoch))(t)
	for _, r := range []platforms.Registry{back, lost} {
		if id, ok := kept(t, r).Authenticate("cf-eu", "new"); !ok || id.ID != "p-1" {
			t.Errorf("it came back as %+v, %v", id, ok)
		}
	}
	expect.Says(t, "an unknown platform", fmt.Sprint(expect.Err(back.Remove("none", epoch))), "platform list")
	expect.Says(t, "an unknown platform", fmt.Sprint(expect.Err(back.Rotate("none", "x", epoch, 0))), "platform list")
}

func kept(t *testing.T, r platforms.Registry) *platforms.Kept {
	t.Helper()
	return keeping(t, func(context.Context) (platforms.Registry, error) { return r, nil },
		func() time.Time { return epoch }, io.Discard)
}

func TestEachPlatformIsItself(t *testing.T) {
	k := kept(t, two(t))
	if id, ok := k.Authenticate("broker", "first"); !ok || id.ID != platforms.Default || id.Path != "" || id.Offerings != nil {
		t.Errorf("the default platform is %+v, %v", id, ok)
	}
	if id, ok := k.Authenticate("cf-eu", "second"); !ok || id.ID != "p-1" || id.Path != "/cf-eu" || len(id.Offerings) != 1 {
		t.Errorf("the other platform is %+v, %v", id, ok)
	}
	for _, c := range [][2]string{{"broker", "second"}, {"cf-eu", "first"}, // one's name and the other's password
		{"broker", "x"}, {"x", "first"}, {"", "first"}, {"broker", ""}, {"", ""}, {"broker", "firs"}} {
		if id, ok := k.Authenticate(c[0], c[1]); ok || id.ID != "" {
			t.Errorf("%q is let in as %+v", c, id)
		}
	}
	if id, ok := kept(t, one(login("u", "p:w"))).Authenticate("u", "p:w"); !ok || id.ID != platforms.Default {
		t.Errorf("with a colon in its password, the right one is %+v, %v", id, ok)
	}
}

// A rotation under load: two processes that keep the registry, each with requests by the old password and, from the moment it is
// known, by the new one. None is refused before the overlap ends.
//
// AUTH-08: several passwords are valid at once.
func TestRotationLosesNoRequest(t *testing.T) {
	var registry atomic.Pointer[platforms.Registry]
	first := one(login("u", "old"))
	registry.Store(&first)
	var clock atomic.Int64 // seconds since the epoch
	now := func() time.Time { return epoch.Add(time.Duration(clock.Load()) * time.Second) }
	read := func(context.Context) (platforms.Registry, error) { return *registry.Load(), nil }
	processes := []*platforms.Kept{keeping(t, read, now, io.Discard), keeping(t, read, now, io.Discard)}
	const rotated, overlap = 20, time.Hour
	known := rotated + int64(platforms.Spread/time.Second)
	for second := int64(0); second < rotated+int64(overlap/time.Second); second++ {
		clock.Store(second)
		if second == rotated {
			next := expect.Get(registry.Load().Rotate("default", "new", now(), overlap))(t)
			registry.Store(&next)
		}
		for n, k := range processes {
			// An attacker tries passwords all the time.
			k.Authenticate("u", "wrong")
			when := fmt.Sprintf("in process %d at second %d", n, second)
			lets(t, k, "old", true, when)
			if _, ok := k.Authenticate("u", "new"); !ok && second >= known {
				t.Fatalf("%s, the new password is refused", when)
			}
		}
	}
	clock.Add(61)
	for _, k := range processes {
		lets(t, k, "old", false, "after the overlap")
	}
}

// A rotation forgets the passwords whose overlap is over, and one without an overlap ends all earlier ones.
func TestRotations(t *testing.T) {
	r := one(login("u", "1"))
	second := platforms.Previous{Password: "2", Until: epoch.Add(70 * time.Minute)}
	third := platforms.Previous{Password: "3", Until: epoch.Add(50 * time.Minute)}
	for n, step := range []struct {
		overlap time.Duration
		left    []platforms.Previous
	}{
		{time.Minute, []platforms.Previous{{Password: "1", Until: epoch.Add(time.Minute)}}},
		{time.Hour, []platforms.Previous{second}},
		{30 * time.Minute, []platforms.Previous{second, third}},
		{0, []platforms.Previous{}},
	} {
		password := string(rune('2' + n))
		r = expect.Get(r.Rotate("default", password, epoch.Add(time.Duration(n)*10*time.Minute), step.overlap))(t)
		expect.Same(t, "the password", password, r.Platforms[0].Password)
		expect.Same(t, fmt.Sprint("left after rotation ", n+1), step.left, r.Platforms[0].Previous)
	}
}
