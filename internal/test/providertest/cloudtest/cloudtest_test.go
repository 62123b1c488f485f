package cloudtest_test

import (
	"os"
	"testing"

	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
)

// The reference provider passes; in the subprocesses of TestMutants it is not
// sound.
func TestSound(t *testing.T) {
	providertest.Run(t, cloudtest.Factory("cloud", os.Getenv(providertest.MutantVariable)))
}

// So it does with secrets that the broker chooses.
func TestSecretsOfTheBroker(t *testing.T) { providertest.Run(t, cloudtest.Factory("broker", "")) }

// The suite catches each mutant of the reference by the case that is there for it.
func TestMutants(t *testing.T) {
	providertest.RunMutants(t, map[string]providertest.Mutant{
		"absent-is-failure":    {Reason: "deleting what is gone is success", Caught: "NeverWas"},
		"adopts-any":           {Reason: "what is another's is adopted by nobody", Caught: "Undeletes"},
		"adopts-foreign":       {Reason: "what is not ours is not taken for ours", Caught: "NotOurs"},
		"changes-input":        {Reason: "the arguments belong to the caller", Caught: "Repeated"},
		"deletes-foreign":      {Reason: "what is not ours is never deleted", Caught: "NotOurs"},
		"describes-foreign":    {Reason: "facts are of the own instance alone", Caught: "Describes"},
		"done-too-early":       {Reason: "deleted is only what is seen to be absent", Caught: "Lifecycle"},
		"exists-is-failure":    {Reason: "what exists and is ours is success", Caught: "Repeated"},
		"failed-update-counts": {Reason: "a failed update leaves the instance as it was", Caught: "Failures"},
		"fails-by-fault":       {Reason: "a passing fault fails no operation", Caught: "Faults"},
		"failure-is-not-final": {Reason: "what has failed stays so", Caught: "Failures"},
		"forgets-at-restart":   {Reason: "a restart does not begin the work again", Caught: "Restarts"},
		"forgets-date":         {Reason: "a quarantine without a date leaves the date", Caught: "Retains"},
		"forgets-incarnation":  {Reason: "no life takes another's things for its own", Caught: "Incarnations"},
		"grants-another":       {Reason: "what is granted is what was recorded", Caught: "Grants"},
		"hides-half-made":      {Reason: "the inventory has what a failed provision left", Caught: "InstanceStates"},
		"ignores-cancelling":   {Reason: "a cancelled call touches nothing", Caught: "Cancelled"},
		"ignores-state":        {Reason: "a key that is recorded is granted", Caught: "Lifecycle"},
		"joined-ids":           {Reason: "ids that read the same when joined never meet", Caught: "Identifiers"},
		"keeps-keys":           {Reason: "what was deleted opens to nobody, also undeleted", Caught: "Undeletes"},
		"keeps-open":           {Reason: "credentials end with the binding", Caught: "Bindings"},
		"keeps-secret":         {Reason: "a secret leaves the state with the grant", Caught: "Grants"},
		"leaves-half-made":     {Reason: "a deletion removes what is half made", Caught: "InstanceStates"},
		"leftover-key":         {Reason: "a key that was never recorded is revoked", Caught: "Faults"},
		"lists-all":            {Reason: "the inventory lists nothing of another broker", Caught: "Brokers"},
		"looks-then-makes":     {Reason: "a late call makes nothing twice", Caught: "LateCalls"},
		"loses-pages":          {Reason: "the inventory is whole", Caught: "Inventory"},
		"makes-anew":           {Reason: "nothing is made in the place of what was retained", Caught: "AdoptsNothing"},
		"needs-parameters":     {Reason: "a deletion is given no parameters", Caught: "Lifecycle"},
		"never-released":       {Reason: "what is released opens as before", Caught: "Quarantine"},
		"no-broker":            {Reason: "two brokers never meet", Caught: "Brokers"},
		"no-platform":          {Reason: "two platforms never meet", Caught: "Platforms"},
		"one-life":             {Reason: "two lives of an id never meet", Caught: "Incarnations"},
		"open-in-quarantine":   {Reason: "what is in quarantine opens to nobody", Caught: "Quarantine"},
		"orphan-untold":        {Reason: "a listed thing carries what its deletion needs", Caught: "Orphans"},
		"random-password":      {Reason: "a repeated bind gives the same grant", Caught: "LostAnswers"},
		"shared-credentials":   {Reason: "each binding has its own credentials", Caught: "Bindings"},
		"tells-parameters":     {Reason: "no failure tells a parameter", Caught: "Failures"},
		"tells-secret":         {Reason: "no description tells a secret", Caught: "Grants"},
		"trusts-absence":       {Reason: "no absence counts at the wrong target", Caught: "WrongTarget"},
		"unbinds-all":          {Reason: "unbinding one binding leaves the others", Caught: "Bindings"},
		"update-creates":       {Reason: "an update creates nothing", Caught: "InstanceStates"},
	})
}
