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
		"adopts-any":         {Reason: "what is another's is adopted by nobody", Caught: "Undeletes"},
		"forgets-date":       {Reason: "a quarantine without a date leaves the date", Caught: "Retains"},
		"keeps-keys":         {Reason: "what was deleted opens to nobody, also undeleted", Caught: "Undeletes"},
		"makes-anew":         {Reason: "nothing is made in the place of what was retained", Caught: "AdoptsNothing"},
		"grants-another":     {Reason: "what is granted is what was recorded", Caught: "Grants"},
		"ignores-state":      {Reason: "a key that is recorded is granted", Caught: "Lifecycle"},
		"keeps-secret":       {Reason: "a secret leaves the state with the grant", Caught: "Grants"},
		"leftover-key":       {Reason: "a key that was never recorded is revoked", Caught: "Faults"},
		"lists-all":          {Reason: "the inventory lists nothing of another broker", Caught: "Brokers"},
		"needs-parameters":   {Reason: "a deletion is given no parameters", Caught: "Lifecycle"},
		"no-broker":          {Reason: "two brokers never meet", Caught: "Brokers"},
		"open-in-quarantine": {Reason: "what is in quarantine opens to nobody", Caught: "Quarantine"},
		"never-released":     {Reason: "what is released opens as before", Caught: "Quarantine"},
		"orphan-untold":      {Reason: "a listed thing carries what its deletion needs", Caught: "Orphans"},
		"trusts-absence":     {Reason: "no absence counts at the wrong target", Caught: "WrongTarget"},
	})
}
