//go:build deployed

package localstack_test

import (
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
	operation := accepted(t, p, instancePath(instance), 120) // long enough for the commands, its deletion takes as long
	eventually(t, "it is being made", settleLimit, func() bool { return c.waits(t, operation) })
	expect.Says(t, "what is shown", longshore(t, "instances", instance), operation, "creating")
	expect.Says(t, "driving it again", longshore(t, "retry", operation), "attempt 2")
	ended := longshore(t, "settle", operation, "--failed", "Ask again next week.", "--yes")
	expect.Says(t, "ending it", ended, "create failed")
	polled := func() (state, description string) {
		a := p.call(t, "GET", instancePath(instance)+"/last_operation", "", 200)
		return a.text("state"), a.text("description")
	}
	if state, description := polled(); state != "failed" || description != "Ask again next week." {
		t.Errorf("the platform is told %s: %s", state, description)
	}
	expect.Says(t, "deleting it", longshore(t, "retry", operation), "deprovision")
	eventually(t, "its deletion has ended", settleLimit, func() bool {
		return !strings.Contains(longshore(t, "instances", "--state", "running"), instance)
	})
	// To the platform it stays failed until it is deleted (PROV-30).
	state, _ := polled()
	expect.Same(t, "the platform is told", "failed", state)
	p.call(t, "DELETE", instancePath(instance)+"?accepts_incomplete=true&"+hints(planAsync), "", 410)
}

// A rebuild gives lost records back from what exists. Nothing else runs meanwhile: the rebuild
// goes on until two listings in turn have seen the same.
func TestRebuild(t *testing.T) {
	n, c := newTenant(t), newCloud(t)
	service, plan := n.planOf(t, "sqs", "standard")
	instance, binding := id("lost"), id("b")
	path, ids := instancePath(instance), hintsOf(service, plan)
	bound := path + "/service_bindings/" + binding
	n.ends(t, "PUT", path, "", order(service, plan, ""))
	n.ends(t, "PUT", bound, "", bind(service, plan))

	records := c.records()
	lost := 0
	for cursor, more := "", true; more; more = cursor != "" {
		page := expect.Get(records.Scan(t.Context(), cursor))(t)
		for _, r := range page.Records {
			if strings.Contains(r.Partition, instance) || strings.Contains(r.Partition, binding) {
				lost++
				expect.OK(t, records.Commit(t.Context(), store.Delete(r.Key, r.Version)))
			}
		}
		cursor = page.Next
	}
	expect.Least(t, "records of the instance and its binding", 3, lost)
	n.call(t, "GET", path, "", 404)

	expect.Says(t, "what is to be rotated", longshore(t, "rebuild", "--yes"), instance+"/"+binding)
	expect.Same(t, "the instance is of plan", plan, n.call(t, "GET", path, "", 200).text("plan_id"))
	expect.Says(t, "a binding without its credentials", n.call(t, "GET", bound, "", 422).text("description"), "rotate it")
	n.ends(t, "DELETE", bound, ids, "")
	n.ends(t, "DELETE", path, ids, "")
	n.call(t, "GET", path, "", 404)
}

// A rebuild gives up the members that a lost key sealed, and nothing else: the records of an instance and of a binding hold
// what another key of KMS has sealed. Nothing else runs meanwhile: another rebuild would give it up as well.
func TestRebuildWithALostKey(t *testing.T) {
	p, c := newPlatform(t), newCloud(t)
	instance, binding, kept := id("rekeyed"), id("b"), id("kept")
	path := instancePath(instance)
	bound, keeps := path+"/service_bindings/"+binding, path+"/service_bindings/"+kept
	p.call(t, "PUT", path, provision(planSync), 201)
	p.call(t, "PUT", bound, bind(service, planSync), 201)
	p.call(t, "PUT", keeps, bind(service, planSync), 201)

	client := awskms.NewFromConfig(emulator.Config(t))
	made := expect.Get(client.CreateKey(t.Context(), &awskms.CreateKeyInput{}))(t)
	lost := kms.New(client, *made.KeyMetadata.Arn)
	records := ledger.New(c.records(), func() string { return id("test") })
	key := lifecycle.Key{Platform: "default", Instance: instance, Binding: binding}
	sealed := func(of lifecycle.Key, member vault.Member) []byte {
		return expect.Get(lost.Seal(t.Context(), vault.Label{Key: of, Member: member}, []byte(`{}`)))(t)
	}
	b := expect.Get(records.Record(t.Context(), key, time.Now()))(t)
	b.Grant = sealed(key, vault.Grant)
	i := expect.Get(records.Record(t.Context(), key.InstanceKey(), time.Now()))(t)
	i.Attributes.Parameters = sealed(i.Key, vault.Parameters)
	expect.OK(t, records.Commit(t.Context(), ledger.Put(b), ledger.Put(i)))
	p.call(t, "GET", bound, "", 500)

	out := longshore(t, "rebuild", "--yes")
	expect.Says(t, "what is lost", out, instance+"/"+binding, "\n  "+instance+"\n")
	expect.Never(t, "what is lost", out, instance+"/"+kept)
	p.call(t, "GET", path, "", 200)
	for method, body := range map[string]string{"GET": "", "PUT": bind(service, planSync)} {
		expect.Says(t, method+" of a binding without its credentials", p.call(t, method, bound, body, 422).text("description"),
			"rotate it")
	}
	p.call(t, "GET", keeps, "", 200)
	p.deletes(t, bound, keeps, path)
	p.call(t, "GET", path, "", 404)
}

// A sweep that fails is told of by a dead letter, and the next one is as if
// nothing had been. Nothing else runs meanwhile: it would wait for the reaper.
func TestAFailedSweepIsToldOf(t *testing.T) {
	c := newCloud(t)
	function := c.functions["reaper"]
	if c.configuration(t, "reaper").DeadLetterConfig == nil {
		// The stack says so, which infra's own tests hold; MiniStack drops it.
		t.Log("the emulator gives functions no dead letters")
		return
	}
	letters := func() int { return len(expect.Get(messages(t.Context(), c.sqs, c.letters))(t)) }
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
