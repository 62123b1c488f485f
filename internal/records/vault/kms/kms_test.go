package kms_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/vaulttest"
)

func newClient(t *testing.T) *awskms.Client {
	t.Helper()
	return awskms.NewFromConfig(emulator.Config(t))
}

// newKey makes a key, which goes when the test ends.
func newKey(t *testing.T) (id string) {
	t.Helper()
	client, in := newClient(t), &awskms.CreateKeyInput{Description: aws.String(emulator.Name("longshore-test"))}
	out := expect.Get(client.CreateKey(t.Context(), in))(t)
	t.Cleanup(func() {
		end := &awskms.ScheduleKeyDeletionInput{KeyId: out.KeyMetadata.KeyId, PendingWindowInDays: aws.Int32(7)}
		expect.Get(client.ScheduleKeyDeletion(context.Background(), end))(t, "removing key:")
	})
	return *out.KeyMetadata.Arn
}

func TestVault(t *testing.T) { runs(t, func(v vault.Vault) vault.Vault { return v }) }

// Values of one data key are as far apart as those of two.
func TestVaultOfOneRequest(t *testing.T) {
	runs(t, func(v vault.Vault) vault.Vault { return oneRequest{v, kms.Together(t.Context())} })
}

func runs(t *testing.T, as func(vault.Vault) vault.Vault) {
	vaulttest.Run(t, func(t *testing.T) (v, again, stranger vault.Vault) {
		key := newKey(t)
		return as(kms.New(newClient(t), key)), as(kms.New(newClient(t), key)), as(kms.New(newClient(t), newKey(t)))
	})
}

// oneRequest has all that a vault does be of one request.
type oneRequest struct {
	vault.Vault
	ctx context.Context
}

func (r oneRequest) Seal(_ context.Context, at vault.Label, plain []byte) ([]byte, error) {
	return r.Vault.Seal(r.ctx, at, plain)
}

func (r oneRequest) Open(_ context.Context, at vault.Label, sealed []byte) ([]byte, error) {
	return r.Vault.Open(r.ctx, at, sealed)
}

// counting is a client that tells what it was called with.
type counting struct {
	*awskms.Client
	generated []*awskms.GenerateDataKeyInput
	decrypted []*awskms.DecryptInput
}

func (c *counting) GenerateDataKey(ctx context.Context, in *awskms.GenerateDataKeyInput,
	opts ...func(*awskms.Options)) (*awskms.GenerateDataKeyOutput, error) {
	c.generated = append(c.generated, in)
	return c.Client.GenerateDataKey(ctx, in, opts...)
}

func (c *counting) Decrypt(ctx context.Context,
	in *awskms.DecryptInput, opts ...func(*awskms.Options)) (*awskms.DecryptOutput, error) {
	c.decrypted = append(c.decrypted, in)
	return c.Client.Decrypt(ctx, in, opts...)
}

var label = vault.Label{Key: lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}, Member: vault.Grant}

// By itself, each value costs one call to seal and one to open, for its record; what is secret goes into none of them.
func TestCalls(t *testing.T) {
	client, key := &counting{Client: newClient(t)}, newKey(t)
	v := kms.New(client, key)
	ofInstance := vault.Label{Key: lifecycle.Key{Platform: "p", Instance: "i"}, Member: vault.Parameters}
	var contexts []map[string]string
	for _, at := range []vault.Label{label, ofInstance, {Member: vault.DataKey}} {
		sealed := expect.Get(v.Seal(t.Context(), at, []byte("canary")))(t)
		expect.Get(v.Open(t.Context(), at, sealed))(t)
		expect.Same(t, "the format", 1, sealed[0])
	}
	expect.Get(v.Seal(t.Context(), label, nil))(t)
	expect.Get(v.Open(t.Context(), label, nil))(t)
	if len(client.generated) != 3 || len(client.decrypted) != 3 {
		t.Fatalf("%d data keys generated and %d decrypted, want 3 and 3", len(client.generated), len(client.decrypted))
	}
	for n := range client.generated {
		g, d := client.generated[n], client.decrypted[n]
		expect.Same(t, "the keys", []string{key, key}, []string{*g.KeyId, *d.KeyId})
		expect.Same(t, "the context that a value is opened for", g.EncryptionContext, d.EncryptionContext)
		contexts = append(contexts, g.EncryptionContext)
		for _, in := range []any{g, d} {
			expect.Never(t, "what was sent", string(expect.Get(json.Marshal(in))(t)), "canary")
		}
	}
	// The table's data key is no record's. Without a context, no function may use the key for it.
	want := []map[string]string{{"platform": "p", "instance": "i", "binding": "b"}, {"platform": "p", "instance": "i"},
		{"member": "data key"}}
	expect.Same(t, "contexts", want, contexts)
	// The use of the key is granted for these names: a label that had another one could not be sealed.
	granted := slices.Sorted(slices.Values(kms.ContextKeys))
	names := slices.AppendSeq(slices.Collect(maps.Keys(contexts[0])), maps.Keys(contexts[2]))
	expect.Same(t, "the names that are granted", slices.Sorted(slices.Values(names)), granted)
}

// stub answers with errors that the emulator does not make, or decrypts to one data key.
type stub struct {
	kms.API
	err error
	key []byte
}

func (s stub) GenerateDataKey(context.Context, *awskms.GenerateDataKeyInput,
	...func(*awskms.Options)) (*awskms.GenerateDataKeyOutput, error) {
	return nil, s.err
}

func (s stub) Decrypt(context.Context, *awskms.DecryptInput, ...func(*awskms.Options)) (*awskms.DecryptOutput, error) {
	return &awskms.DecryptOutput{Plaintext: bytes.Clone(s.key)}, s.err
}

// Only what is known never to open is called sealed: who takes a key that is
// out of reach for a value that was changed gives it up for lost.
func TestErrors(t *testing.T) {
	sealed := expect.Get(kms.New(newClient(t), newKey(t)).Seal(t.Context(), label, []byte("canary")))(t)
	for name, test := range map[string]struct {
		reason string
		err    error
		sealed bool
	}{
		"Changed":     {"the data key was changed, or is another label's", &types.InvalidCiphertextException{}, true},
		"OtherKey":    {"the data key is another key's", &types.IncorrectKeyException{}, true},
		"Disabled":    {"the key may be enabled again", &types.DisabledException{}, false},
		"Deleting":    {"its deletion may be cancelled", &types.KMSInvalidStateException{}, false},
		"Unavailable": {"it passes", &types.KeyUnavailableException{}, false},
		"Gone":        {"a wrong setting looks the same", &types.NotFoundException{}, false},
		"Internal":    {"it passes", &types.KMSInternalException{}, false},
		"Network":     {"it passes", errors.New("connection reset"), false},
		"Over":        {"the time was up", context.DeadlineExceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := kms.New(stub{err: test.err}, "key")
			_, err := v.Open(t.Context(), label, sealed)
			if errors.Is(err, vault.ErrSealed) != test.sealed || !test.sealed && !errors.Is(err, test.err) {
				t.Errorf("%s: got error %v", test.reason, err)
			}
			if sealed, err := v.Seal(t.Context(), label, []byte("canary")); !errors.Is(err, test.err) || sealed != nil {
				t.Errorf("sealing: got %d bytes and error %v", len(sealed), err)
			}
		})
	}
}

// A key that is disabled is out of reach and no more than that.
func TestDisabledKey(t *testing.T) {
	client, key := newClient(t), newKey(t)
	v := kms.New(client, key)
	sealed := expect.Get(v.Seal(t.Context(), label, []byte("canary")))(t)
	expect.Get(client.DisableKey(t.Context(), &awskms.DisableKeyInput{KeyId: &key}))(t)
	if _, err := v.Open(t.Context(), label, sealed); err == nil || errors.Is(err, vault.ErrSealed) {
		t.Errorf("with a disabled key: got error %v", err)
	}
	expect.Get(client.EnableKey(t.Context(), &awskms.EnableKeyInput{KeyId: &key}))(t)
	opened := expect.Get(v.Open(t.Context(), label, sealed))(t, "with the key enabled again:")
	expect.Same(t, "the value", "canary", string(opened))
}

// A value without a readable data key is not sent to KMS.
func TestOtherForms(t *testing.T) {
	v := kms.New(stub{err: errors.New("it was called")}, "key")
	for name, other := range map[string][]byte{
		"Short":       {1},
		"OtherFormat": append([]byte{3, 0, 8}, make([]byte, 100)...),
		"NoKey":       append([]byte{1, 0, 0}, make([]byte, 100)...),
		"CutKey":      append([]byte{1, 0, 90}, make([]byte, 100)...),
		"HugeKey":     append([]byte{1, 255, 255}, make([]byte, 70_000)...),
	} {
		expect.Fails(t, name, vault.ErrSealed, expect.Err(v.Open(t.Context(), label, other)))
	}
}

// A value that was sealed when the form was made opens for ever.
func TestTheFormIsGolden(t *testing.T) {
	const form = "01000864617461206b6579b8095a39c1a99d3465e37d72b62ff394afff06b22deb2b59eafc0b6819d7ab6162ac3f"
	sealed := expect.Get(hex.DecodeString(form))(t)
	got := expect.Get(kms.New(stub{key: bytes.Repeat([]byte{7}, 32)}, "key").Open(t.Context(), label, sealed))(t)
	expect.Same(t, "the value", "a grant", string(got))
	// KMS gives something that was never a data key of ours.
	expect.Fails(t, "a short data key", vault.ErrSealed,
		expect.Err(kms.New(stub{key: []byte("short")}, "key").Open(t.Context(), label, sealed)))
}

// One request asks KMS once for all that it seals of a record, and once for all that
// it opens of what was sealed together; the next request asks again.
func TestTogether(t *testing.T) {
	client, key := &counting{Client: newClient(t)}, newKey(t)
	v, stranger := kms.New(client, key), kms.New(newClient(t), newKey(t))
	members := []vault.Member{vault.Parameters, vault.Context, vault.Identity}
	at := func(binding string, m vault.Member) vault.Label {
		return vault.Label{Key: lifecycle.Key{Platform: "p", Instance: "i", Binding: binding}, Member: m}
	}
	sealed := map[vault.Label][]byte{}
	calls := func(reason string, generated, decrypted int) {
		t.Helper()
		if len(client.generated) != generated || len(client.decrypted) != decrypted {
			t.Errorf("%s: %d data keys generated and %d decrypted, want %d and %d",
				reason, len(client.generated), len(client.decrypted), generated, decrypted)
		}
		client.generated, client.decrypted = nil, nil
	}
	open := func(ctx context.Context, v vault.Vault, at vault.Label, sealed []byte) error {
		plain, err := v.Open(ctx, at, sealed)
		if err == nil && string(plain) != "canary" {
			t.Errorf("%v: opened %q", at, plain)
		}
		return err
	}
	first := kms.Together(t.Context())
	for _, binding := range []string{"", "b"} {
		for _, m := range members {
			at := at(binding, m)
			sealed[at] = expect.Get(v.Seal(first, at, []byte("canary")))(t)
			expect.OK(t, open(first, v, at, sealed[at]))
		}
	}
	calls("sealing three members of two records", 2, 0)
	second := kms.Together(t.Context())
	for label, sealed := range sealed {
		expect.OK(t, open(second, v, label, sealed))
	}
	calls("opening them", 0, 2)
	// The key of a record opens no other member of it, and nothing of another record.
	for label, value := range sealed {
		for other := range sealed {
			if err := open(second, v, other, value); other != label && !errors.Is(err, vault.ErrSealed) {
				t.Errorf("sealed for %v, opened for %v: error %v", label, other, err)
			}
		}
		expect.Fails(t, "another vault", vault.ErrSealed, open(second, stranger, label, value))
	}
	client.generated, client.decrypted = nil, nil
	// A key that was read from a record seals nothing.
	expect.Get(v.Seal(second, at("", vault.State), []byte("canary")))(t)
	calls("sealing after opening", 1, 0)
	expect.OK(t, open(t.Context(), v, at("", vault.Context), sealed[at("", vault.Context)]))
	calls("the next request", 0, 1)
}
