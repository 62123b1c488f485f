//go:build deployed

package localstack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// An operator sees an operation that takes its time, drives it again, ends it by his word, and has what it left removed.
func TestOperators(t *testing.T) {
	t.Parallel()
	p, c := newPlatform(t), newCloud(t)
	instance := id("operated")
	operation := accepted(t, p, instance, 120) // long enough for the commands, its deletion takes as long
	eventually(t, "it is being made", settleLimit, func() bool { return c.waits(t, operation) })
	if out := longshore(t, "instances", instance); !strings.Contains(out, operation) || !strings.Contains(out, "creating") {
		t.Fatalf("what is shown:\n%s", out)
	}
	if out := longshore(t, "retry", operation); !strings.Contains(out, "attempt 2") {
		t.Fatalf("driving it again says:\n%s", out)
	}
	if out := longshore(t, "settle", operation, "--failed", "Ask again next week.",
		"--yes"); !strings.Contains(out, "create failed") {
		t.Fatalf("ending it says:\n%s", out)
	}
	if a := p.call(t, "GET", instancePath(instance)+"/last_operation", "", 200); a.text("state") != "failed" ||
		a.text("description") != "Ask again next week." {
		t.Errorf("the platform is told %s", a.raw)
	}
	if out := longshore(t, "retry", operation); !strings.Contains(out, "deprovision") {
		t.Fatalf("deleting it says:\n%s", out)
	}
	eventually(t, "its deletion has ended", settleLimit, func() bool {
		return !strings.Contains(longshore(t, "instances", "--state", "running"), instance)
	})
	// To the platform it stays failed until it is deleted (PROV-30).
	if state := p.call(t, "GET", instancePath(instance)+"/last_operation", "", 200).text("state"); state != "failed" {
		t.Errorf("the platform is told %q", state)
	}
	p.call(t, "DELETE", instancePath(instance)+"?accepts_incomplete=true&"+hints(planAsync), "", 410)
}

// A rebuild gives lost records back from what exists. Nothing else runs meanwhile: the rebuild
// goes on until two listings in turn have seen the same.
func TestRebuild(t *testing.T) {
	n, c := newTenant(t), newCloud(t)
	service, plan := n.planOf(t, "sqs", "standard")
	instance, binding := id("lost"), id("b")
	path, ids := instancePath(instance), "service_id="+service+"&plan_id="+plan
	n.ends(t, "PUT", path, "", fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`, service,
		plan))
	n.ends(t, "PUT", path+"/service_bindings/"+binding, "", fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, plan))

	records := c.records()
	lost := 0
	for cursor := ""; ; {
		page := expect.Get(records.Scan(t.Context(), cursor))(t)
		for _, r := range page.Records {
			if strings.Contains(r.Partition, instance) || strings.Contains(r.Partition, binding) {
				lost++
				expect.OK(t, records.Commit(t.Context(), store.Delete(r.Key, r.Version)))
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if lost < 3 {
		t.Fatalf("%d records were of the instance and its binding", lost)
	}
	n.call(t, "GET", path, "", 404)

	out := longshore(t, "rebuild", "--yes")
	if !strings.Contains(out, instance+"/"+binding) {
		t.Fatalf("the binding is not to be rotated:\n%s", out)
	}
	expect.Same(t, "the instance is of plan", plan, n.call(t, "GET", path, "", 200).text("plan_id"))
	if a := n.call(t, "GET", path+"/service_bindings/"+binding, "", 422); !strings.Contains(a.text("description"), "rotate it") {
		t.Errorf("a binding without its credentials: %s", a.raw)
	}
	n.ends(t, "DELETE", path+"/service_bindings/"+binding, ids, "")
	n.ends(t, "DELETE", path, ids, "")
	n.call(t, "GET", path, "", 404)
}

// A rebuild gives up the members that a lost key sealed, and nothing else: the records of an instance and of a binding hold
// what another key of KMS has sealed. Nothing else runs meanwhile: another rebuild would give it up as well.
func TestRebuildWithALostKey(t *testing.T) {
	p, c := newPlatform(t), newCloud(t)
	instance, binding := id("rekeyed"), id("b")
	path := instancePath(instance)
	p.call(t, "PUT", path, provision(planSync), 201)
	p.call(t, "PUT", path+"/service_bindings/"+binding, fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, planSync), 201)
	kept := id("kept")
	p.call(t, "PUT", path+"/service_bindings/"+kept, fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, planSync), 201)

	client := awskms.NewFromConfig(emulator.Config(t))
	made := expect.Get(client.CreateKey(t.Context(), &awskms.CreateKeyInput{}))(t)
	lost := kms.New(client, *made.KeyMetadata.Arn)
	records := ledger.New(c.records(), func() string { return id("test") })
	key := lifecycle.Key{Platform: "default", Instance: instance, Binding: binding}
	b, err := records.Record(t.Context(), key, time.Now())
	if err == nil {
		b.Grant, err = lost.Seal(t.Context(), vault.Label{Key: key, Member: vault.Grant}, []byte(`{}`))
	}
	expect.OK(t, err)
	i, err := records.Record(t.Context(), key.InstanceKey(), time.Now())
	if err == nil {
		i.Attributes.Parameters, err = lost.Seal(t.Context(), vault.Label{Key: i.Key, Member: vault.Parameters}, []byte(`{}`))
	}
	if err == nil {
		err = records.Commit(t.Context(), ledger.Put(b), ledger.Put(i))
	}
	expect.OK(t, err)
	p.call(t, "GET", path+"/service_bindings/"+binding, "", 500)

	out := longshore(t, "rebuild", "--yes")
	if !strings.Contains(out, instance+"/"+binding) || strings.Contains(out, instance+"/"+kept) ||
		!strings.Contains(out, "\n  "+instance+"\n") {
		t.Errorf("what is lost is not what was said:\n%s", out)
	}
	p.call(t, "GET", path, "", 200)
	for method, body := range map[string]string{"GET": "",
		"PUT": fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, planSync)} {
		if a := p.call(t, method, path+"/service_bindings/"+binding, body,
			422); !strings.Contains(a.text("description"), "rotate it") {
			t.Errorf("%s of a binding without its credentials: %s", method, a.raw)
		}
	}
	p.call(t, "GET", path+"/service_bindings/"+kept, "", 200)
	for _, of := range []string{path + "/service_bindings/" + binding, path + "/service_bindings/" + kept, path} {
		p.call(t, "DELETE", of+"?"+hints(planSync), "", 200)
	}
	p.call(t, "GET", path, "", 404)
}

// A sweep that fails is told of by a dead letter, and the next one is as if
// nothing had been. Nothing else runs meanwhile: it would wait for the reaper.
func TestAFailedSweepIsToldOf(t *testing.T) {
	c := newCloud(t)
	function := c.functions["reaper"]
	made, err := c.lambda.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &function})
	expect.OK(t, err)
	if made.DeadLetterConfig == nil {
		// The stack says so, which infra's own tests hold; MiniStack drops it.
		t.Log("the emulator gives functions no dead letters")
		return
	}
	letters := func() int {
		told := expect.Get(messages(t.Context(), c.sqs, c.letters))(t)
		return len(told)
	}
	before := letters()
	undo := c.with(t, "reaper", 0, map[string]string{app.EnvTable: c.table + "-is-not-there"})
	expect.Get(c.lambda.Invoke(t.Context(),
		&lambda.InvokeInput{FunctionName: &function, InvocationType: types.InvocationTypeEvent, Payload: []byte("{}")}))(t)
	eventually(t, "a dead letter tells of the sweep", 5*time.Minute, func() bool { return letters() > before })
	undo()
	out, err := c.lambda.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &function, Payload: []byte("{}")})
	if err != nil || out.FunctionError != nil {
		t.Errorf("the next sweep: %v, %s", err, out.Payload)
	}
}
