package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// released has what each release wrote: a data folder that it left when it was killed amid operations,
// and the credentials that it had given. RELEASE=v0.1.0 writes those of a new release.
const released = "testdata/released"

// Every version goes on with the folder of each earlier one, while platforms ask all the time: what is
// ready can be used, what was under way ends, and all of it can be deleted.
func TestReleasedFolders(t *testing.T) {
	if version := os.Getenv("RELEASE"); version != "" {
		release(t, filepath.Join(released, version))
	}
	folders, err := filepath.Glob(filepath.Join(released, "v*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("there is no release: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			goOn(t, folder)
		})
	}
}

// release has the program of now leave a folder.
func release(t *testing.T, to string) {
	t.Helper()
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=5s")...)
	must(t, p.url, "PUT", instancePath("ready"), provisionBody(planSync, `{"note":"of the release"}`), 201)
	bound := must(t, p.url, "PUT", bindingPath("ready", "b"), planBody(service, planSync, ""), 201)
	must(t, p.url, "PUT", instancePath("deleted"), provisionBody(planSync, `{}`), 201)
	must(t, p.url, "DELETE", instancePath("deleted")+"?"+hints(planSync), "", 200)
	must(t, p.url, "PUT", instancePath("failed")+async, provisionBody(planAsync, `{"fail":true}`), 202)
	must(t, p.url, "PUT", instancePath("deleting")+async, provisionBody(planAsync, `{}`), 202)
	for _, id := range []string{"failed", "deleting"} {
		settled(t, p.url, instancePath(id))
	}
	must(t, p.url, "DELETE", instancePath("deleting")+async+"&"+hints(planAsync), "", 202)
	must(t, p.url, "PUT", instancePath("creating")+async, provisionBody(planAsync, `{}`), 202)
	p.kill()
	given := expect.Get(json.MarshalIndent(bound.body["credentials"], "", "  "))(t)
	expect.OK(t, errors.Join(os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, "credentials.json"), given, 0o644)))
	tar(t, "-czf", filepath.Join(to, "folder.tar.gz"), "-C", data, ".")
}

func goOn(t *testing.T, folder string) {
	data := t.TempDir()
	tar(t, "-xzf", filepath.Join(folder, "folder.tar.gz"), "-C", data)
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=100ms")...)
	ids := []string{"ready", "failed", "deleted", "deleting", "creating"}
	asking, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for n := range 4 {
		load.Go(func() {
			for i := n; asking.Err() == nil; i++ {
				path := instancePath(ids[i%len(ids)])
				if i%2 == 0 {
					path += "/last_operation"
				}
				if a, err := send(p.url, "GET", path, ""); err != nil || a.status >= 500 {
					t.Errorf("GET %s: %d %s %v", path, a.status, a.raw, err)
				}
			}
		})
	}
	settled(t, p.url, instancePath("deleting"))
	for _, id := range []string{"deleting", "deleted"} {
		must(t, p.url, "GET", instancePath(id), "", 404)
	}
	for id, want := range map[string]string{"creating": "succeeded", "failed": "failed"} {
		expect.Same(t, id+" ended", want, settled(t, p.url, instancePath(id)))
	}
	var given any
	expect.OK(t, json.Unmarshal(expect.Get(os.ReadFile(filepath.Join(folder, "credentials.json")))(t), &given))
	binding := bindingPath("ready", "b")
	got := must(t, p.url, "GET", binding, "", 200).body["credentials"]
	expect.Same(t, "the credentials that the release gave", given, got)
	must(t, p.url, "PATCH", instancePath("ready")+async,
		`{"service_id":"`+service+`","parameters":{"note":"of a later version"}}`, 200, 202)
	settled(t, p.url, instancePath("ready"))
	must(t, p.url, "DELETE", binding+"?"+hints(planSync), "", 200)
	for id, plan := range map[string]string{"ready": planSync, "failed": planAsync, "creating": planAsync} {
		must(t, p.url, "DELETE", instancePath(id)+async+"&"+hints(plan), "", 200, 202)
		waitFor(t, settleLimit, "the deletion of "+id, func() bool {
			a, err := send(p.url, "GET", instancePath(id), "")
			return err == nil && a.status == 404
		})
	}
	stop()
	load.Wait()
}

// tar packs and unpacks.
func tar(t *testing.T, args ...string) {
	t.Helper()
	if said, err := exec.Command("tar", args...).CombinedOutput(); err != nil {
		t.Fatalf("tar %v: %v\n%s", args, err, said)
	}
}
