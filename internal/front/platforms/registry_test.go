package platforms_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func login(username, password string) platforms.Credential {
	return platforms.Credential{Username: username, Password: password}
}

func two(t *testing.T) platforms.Registry {
	t.Helper()
	r, err := one(login("broker", "first")).Add(platforms.Platform{
		Name: "cf-eu", Path: "/cf-eu", Credential: login("cf-eu", "second"), Offerings: []string{"demo/sync"},
	}, "p-1", epoch)
	expect.OK(t, err)
	return r
}

// A document that only holds a user name and a password is a whole one: that
// is what a deployment makes.
func TestDocuments(t *testing.T) {
	r, err := platforms.Decode([]byte(`{"username":"broker","password":"first"}`))
	expect.OK(t, err)
	expect.Same(t, "the registry", one(login("broker", "first")), r)
	many, err := two(t).Rotate("cf-eu", "third", epoch, time.Hour)
	expect.OK(t, err)
	raw, err := many.Encode()
	expect.OK(t, err)
	if !strings.HasPrefix(string(raw), `{"username":"broker","password":"first",`) {
		t.Errorf("the default platform does not stand by itself: %s", raw)
	}
	again, err := platforms.Decode(raw)
	expect.OK(t, err)
	expect.Same(t, "the registry", many, again)
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
	platform := func(change func(*platforms.Platform)) platforms.Platform {
		p := platforms.Platform{Name: "korifi", Credential: login("korifi", "x")}
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		p    platforms.Platform
		want string
	}{
		"Name":     {platform(func(p *platforms.Platform) { p.Name = "Not Valid" }), "small letters"},
		"Path":     {platform(func(p *platforms.Platform) { p.Path = "/a/b" }), "path"},
		"Reserved": {platform(func(p *platforms.Platform) { p.Path = "/operations" }), "path"},
		"Exists":   {platform(func(p *platforms.Platform) { p.Name = "cf-eu" }), "exists"},
		"Default":  {platform(func(p *platforms.Platform) { p.Name = "default" }), "exists"},
		"User":     {platform(func(p *platforms.Platform) { p.Username = "broker" }), "user name"},
		"ID":       {platform(func(p *platforms.Platform) { p.ID = "P#1" }), "id \"P#1\" is not valid"},
		"LongID":   {platform(func(p *platforms.Platform) { p.ID = strings.Repeat("p", 41) }), "is not valid"},
		"TakenID":  {platform(func(p *platforms.Platform) { p.ID = "p-1" }), `id "p-1" is that of platform "cf-eu"`},
		"First": {platform(func(p *platforms.Platform) { p.ID = platforms.Default }),
			`id "default" is that of platform "default"`},
	} {
		r := two(t)
		if _, err := r.Add(tc.p, "p-2", epoch); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want one about %q", name, err, tc.want)
		}
		expect.Same(t, fmt.Sprintf("%s: the registry", name), two(t), r)
	}
}

// A removed platform that comes back owns what it made; no other platform does.
func TestRemoveKeepsTheID(t *testing.T) {
	r, err := two(t).Remove("cf-eu", epoch)
	expect.OK(t, err)
	k := kept(t, &r, func() time.Time { return epoch })
	if id, ok := k.Authenticate("cf-eu", "second"); ok {
		t.Errorf("a removed platform is let in: %+v", id)
	}
	if _, err := r.Remove("cf-eu", epoch); err == nil {
		t.Error("it was removed twice")
	}
	if _, err := r.Rotate("cf-eu", "x", epoch, 0); err == nil {
		t.Error("a removed platform has a new password")
	}
	if _, err := r.WithSignOn("cf-eu", &platforms.SignOn{}); err == nil || !strings.Contains(err.Error(), "platform add cf-eu") {
		t.Errorf("people are to sign on by the login of a removed platform: %v", err)
	}
	for name, p := range map[string]platforms.Platform{
		"add it again under that name": {ID: "p-1", Name: "korifi", Credential: login("korifi", "new")},
		`with its id "p-1"`:            {ID: "p-8", Name: "cf-eu", Credential: login("cf-eu", "new")},
	} {
		if _, err := r.Add(p, "p-9", epoch); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with the id %q: %v", p.Name, p.ID, err)
		}
	}
	r, err = r.Add(platforms.Platform{Name: "cf-eu", Credential: login("cf-eu", "new")}, "p-9", epoch)
	expect.OK(t, err)
	if id, ok := kept(t, &r, func() time.Time { return epoch }).Authenticate("cf-eu", "new"); !ok || id.ID != "p-1" {
		t.Errorf("it came back as %+v, %v", id, ok)
	}
	for _, unknown := range []func() error{
		func() error { _, err := r.Remove("none", epoch); return err },
		func() error { _, err := r.Rotate("none", "x", epoch, 0); return err },
	} {
		if err := unknown(); err == nil || !strings.Contains(err.Error(), "platform list") {
			t.Errorf("an unknown platform: %v", err)
		}
	}
}

// A registry that was lost gets a platform back under the id that its records
// have.
func TestAddWithAnID(t *testing.T) {
	r, err := one(login("broker", "first")).Add(platforms.Platform{ID: "p-1", Name: "cf",
		Credential: login("cf", "new")}, "p-9", epoch)
	expect.OK(t, err)
	if id, ok := kept(t, &r, func() time.Time { return epoch }).Authenticate("cf", "new"); !ok || id.ID != "p-1" {
		t.Errorf("it came back as %+v, %v", id, ok)
	}
}

func kept(t *testing.T, r *platforms.Registry, now func() time.Time) *platforms.Kept {
	t.Helper()
	var mu sync.Mutex
	k, err := platforms.NewKept(t.Context(), func(context.Context) (platforms.Registry, error) {
		mu.Lock()
		defer mu.Unlock()
		return *r, nil
	}, now, slog.New(slog.NewTextHandler(io.Discard, nil)))
	expect.OK(t, err)
	return k
}

func TestEachPlatformIsItself(t *testing.T) {
	r := two(t)
	k := kept(t, &r, func() time.Time { return epoch })
	if id, ok := k.Authenticate("broker", "first"); !ok || id.ID != platforms.Default || id.Path != "" || id.Offerings != nil {
		t.Errorf("the default platform is %+v, %v", id, ok)
	}
	if id, ok := k.Authenticate("cf-eu", "second"); !ok || id.ID != "p-1" || id.Path != "/cf-eu" || len(id.Offerings) != 1 {
		t.Errorf("the other platform is %+v, %v", id, ok)
	}
	for _, mixed := range []platforms.Credential{login("broker", "second"), login("cf-eu", "first")} {
		if id, ok := k.Authenticate(mixed.Username, mixed.Password); ok {
			t.Errorf("one's name and the other's password are %+v", id)
		}
	}
}

// A rotation under load: two processes that keep the registry, each with
// requests by the old password and, from the moment it is known, by the new
// one. None is refused before the overlap ends.
//
// AUTH-08: several passwords are valid at once.
func TestRotationLosesNoRequest(t *testing.T) {
	var registry atomic.Pointer[platforms.Registry]
	first := one(login("u", "old"))
	registry.Store(&first)
	var clock atomic.Int64 // seconds since the epoch
	now := func() time.Time { return epoch.Add(time.Duration(clock.Load()) * time.Second) }
	var processes []*platforms.Kept
	for range 2 {
		k, err := platforms.NewKept(t.Context(),
			func(context.Context) (platforms.Registry, error) { return *registry.Load(), nil }, now,
			slog.New(slog.NewTextHandler(io.Discard, nil)))
		expect.OK(t, err)
		processes = append(processes, k)
	}
	const rotated, overlap = 20, time.Hour
	known := rotated + int64(platforms.Spread/time.Second)
	for second := int64(0); second < rotated+int64(overlap/time.Second); second++ {
		clock.Store(second)
		if second == rotated {
			next, err := registry.Load().Rotate("default", "new", now(), overlap)
			expect.OK(t, err)
			registry.Store(&next)
		}
		for n, k := range processes {
			// An attacker tries passwords all the time.
			k.Authenticate("u", "wrong")
			if _, ok := k.Authenticate("u", "old"); !ok {
				t.Fatalf("process %d refused the old password at second %d", n, second)
			}
			if _, ok := k.Authenticate("u", "new"); !ok && second >= known {
				t.Fatalf("process %d refused the new password at second %d", n, second)
			}
		}
	}
	clock.Add(61)
	for n, k := range processes {
		if _, ok := k.Authenticate("u", "old"); ok {
			t.Errorf("process %d takes the old password after the overlap", n)
		}
	}
}

// TestRotations proves that a rotation forgets the passwords whose overlap is over, and
// that one without an overlap ends all earlier ones.
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
		var err error
		if r, err = r.Rotate("default", password, epoch.Add(time.Duration(n)*10*time.Minute), step.overlap); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.left, r.Platforms[0].Previous); diff != "" || r.Platforms[0].Password != password {
			t.Errorf("rotation %d: password %q, previous -want +got:\n%s", n+1, r.Platforms[0].Password, diff)
		}
	}
}
