//go:build deployed

package localstack_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

func TestCatalog(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	a := p.call(t, "GET", "/v2/catalog", "", 200)
	expect.Says(t, "the catalog", a.raw, service, planAsync)
	if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		t.Errorf("content type %q", kind)
	}
	for _, wrong := range []platform{{p.url, p.username, p.password + "x"}, {p.url, p.username + "x", p.password}} {
		wrong.call(t, "GET", "/v2/catalog", "", 401)
	}
}

// An instance that takes its time, from its order to its end.
func TestAsynchronousLifecycle(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	path := instancePath(id("i"))
	accepted := p.call(t, "PUT", path+"?accepts_incomplete=true", provision(planAsync), 202)
	operation := accepted.text("operation")
	if operation == "" || !strings.HasSuffix(accepted.header.Get("Location"), "/operations/"+operation) {
		t.Fatalf("no operation, or not where it is: %s, %v", accepted.raw, accepted.header)
	}
	again := p.call(t, "PUT", path+"?accepts_incomplete=true", provision(planAsync), 202)
	expect.Same(t, "the operation of the same request", operation, again.text("operation"))
	if state := p.settled(t, path, operation); state != "succeeded" {
		t.Fatalf("provisioning ended %q", state)
	}
	p.call(t, "GET", path, "", 200)
	p.call(t, "PUT", path+"?accepts_incomplete=true", provision(planAsync), 200)

	binding := path + "/service_bindings/" + id("b")
	first := p.call(t, "PUT", binding, bind(service, planAsync), 201)
	if again := p.call(t, "PUT", binding, bind(service, planAsync), 200); first.body["credentials"] == nil ||
		first.raw != again.raw {
		t.Errorf("the same binding has other credentials, or none")
	}
	p.call(t, "DELETE", binding+"?"+hints(planAsync), "", 200)
	p.call(t, "DELETE", binding+"?"+hints(planAsync), "", 410)
	p.ends(t, "DELETE", path, hints(planAsync), "")
	p.call(t, "GET", path, "", 404)
	p.call(t, "DELETE", path+"?accepts_incomplete=true&"+hints(planAsync), "", 410)
}

// The function calls the provisioner itself and answers when it is done.
func TestSynchronousLifecycle(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	path := instancePath(id("i"))
	p.call(t, "PUT", path, provision(planSync), 201)
	p.call(t, "PUT", path, provision(planSync), 200)
	p.deletes(t, path)
	p.call(t, "DELETE", path+"?"+hints(planSync), "", 410)
}
