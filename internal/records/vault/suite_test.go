package vault_test

import (
	"bytes"
	"testing"

	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/vaulttest"
)

func TestLocal(t *testing.T) {
	vaulttest.Run(t, func(t *testing.T) (v, again, stranger vault.Vault) {
		other, err := vault.NewLocal(bytes.Repeat([]byte{8}, 32))
		expect.OK(t, err)
		return newVault(t), newVault(t), other
	})
}
