package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/records/vault/kms"
)

// State is everything that the broker knows: the table of its records, and the key that opens them.
// Both outlive the stack: after the broker was removed, platforms still ask for their instances.
type State struct {
	Table awsdynamodb.ITable
	Key   awskms.IKey
	// Emulated leaves out conditions that require a key to be present: no emulator supports these.
	// Never set it on AWS.
	Emulated bool
}

// NewState returns the state that another stack left, which this stack does not own. Without one, it makes
// the table, as the store describes it, and its key, which is rotated after the given number of days. Each
// rotation adds a dollar a month, up to the second one.
func NewState(scope constructs.Construct, s Settings) *State {
	scope = subscope(scope, "State")
	if s.Table != "" {
		return &State{
			Table:    awsdynamodb.Table_FromTableName(scope, new("Table"), &s.Table),
			Key:      awskms.Key_FromKeyArn(scope, new("Key"), &s.Key),
			Emulated: s.Services.Emulated,
		}
	}
	key := awskms.NewKey(scope, new("Key"), &awskms.KeyProps{
		Description:       new("Seals the secrets in the broker's records, and encrypts its table"),
		EnableKeyRotation: new(true),
		RotationPeriod:    awscdk.Duration_Days(jsii.Number(s.KeyRotation)),
		RemovalPolicy:     awscdk.RemovalPolicy_RETAIN,
	})
	attribute := func(name string, kind awsdynamodb.AttributeType) *awsdynamodb.Attribute {
		return &awsdynamodb.Attribute{Name: &name, Type: kind}
	}
	table := awsdynamodb.NewTable(scope, new("Table"), &awsdynamodb.TableProps{
		PartitionKey:        attribute(dynamo.AttributePartition, awsdynamodb.AttributeType_STRING),
		SortKey:             attribute(dynamo.AttributeSort, awsdynamodb.AttributeType_STRING),
		TimeToLiveAttribute: new(dynamo.AttributeExpires),
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		Encryption:          awsdynamodb.TableEncryption_CUSTOMER_MANAGED,
		EncryptionKey:       key,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: new(true),
		},
		DeletionProtection: new(true),
		RemovalPolicy:      awscdk.RemovalPolicy_RETAIN,
	})
	table.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
		IndexName:      new(dynamo.IndexDue),
		PartitionKey:   attribute(dynamo.AttributeShard, awsdynamodb.AttributeType_NUMBER),
		SortKey:        attribute(dynamo.AttributeDue, awsdynamodb.AttributeType_NUMBER),
		ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
	})
	return &State{Table: table, Key: key, Emulated: s.Services.Emulated}
}

// Records returns the rights to read records by their keys and to commit changes: for a transaction,
// AWS requires the rights for each of its parts. The table's key may be used through the table only.
func (s *State) Records() Grants {
	throughTable := allow("TableKey", s.Key.KeyArn(),
		"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext",
		"kms:ReEncryptFrom", "kms:ReEncryptTo").
		when("StringEquals", map[string]any{"kms:ViaService": service(s.Table, "dynamodb")})
	records := allow("Records", s.Table.TableArn(), "dynamodb:ConditionCheckItem", "dynamodb:GetItem", "dynamodb:PutItem")
	return append(records, throughTable...)
}

// Lists returns the rights to list an instance's bindings, its history, and what the console shows.
func (s *State) Lists() Grants {
	return allow("Lists", s.Table.TableArn(), "dynamodb:Query")
}

// Reapers returns the rights to list the records of the reaper itself, and no others.
func (s *State) Reapers() Grants {
	return s.only(allow("Own", s.Table.TableArn(), "dynamodb:Query"), "dynamodb:LeadingKeys", []string{ledger.ReaperPartition})
}

// Removal returns the rights to remove records that are no longer needed.
func (s *State) Removal() Grants {
	return allow("Removal", s.Table.TableArn(), "dynamodb:DeleteItem")
}

// Due returns the rights to list and read what is due.
func (s *State) Due() Grants {
	index := new(*s.Table.TableArn() + "/index/" + dynamo.IndexDue)
	return append(allow("Due", index, "dynamodb:Query"), allow("DueRecords", s.Table.TableArn(), "dynamodb:BatchGetItem")...)
}

// Sealing returns the rights to seal and open the secret parts of records. They are limited to the
// encryption contexts of the vault, so they open neither what the table or Secrets Manager has
// encrypted with the same key, nor anything without a context.
func (s *State) Sealing() Grants {
	sealing := allow("Sealing", s.Key.KeyArn(), "kms:Decrypt", "kms:GenerateDataKey")
	return s.only(sealing, "kms:EncryptionContextKeys", kms.ContextKeys)
}

// only restricts a grant to calls whose values of a condition key are all among the given ones.
// Hazard: by itself, that condition also holds for a call without the condition key.
func (s *State) only(of Grants, key string, values []string) Grants {
	of = of.when("ForAllValues:StringEquals", map[string]any{key: values})
	if s.Emulated {
		return of
	}
	return of.when("Null", map[string]any{key: "false"})
}
