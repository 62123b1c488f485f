package dynamo

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/records/store"
)

// Commit implements store.Store. One change is one PutItem or DeleteItem; several changes, and a
// lone check, are one TransactWriteItems. If all changes together are larger than DynamoDB takes
// (4 MB), the error is ErrInvalid.
func (s *Store) Commit(ctx context.Context, changes ...store.Change) (err error) {
	defer while(&err, "committing %d changes", len(changes))
	if err := store.CheckChanges(changes); err != nil {
		return err
	}
	unanswered, err := s.repeat(ctx, s.write(changes))
	f := faultOf(err)
	switch {
	case err == nil:
		return nil
	case !unanswered && f.conflicts():
		return conflict(changes, f.at)
	case !unanswered && f.kind == invalid:
		return fmt.Errorf("%w: %w", store.ErrInvalid, err)
	case !unanswered:
		return err
	case f.kind == changed && landed(changes, f.found):
		return nil
	}
	// ErrConflict would say that nothing was changed. After a try without an answer, that is unknown: the
	// version in the way may be the one that this try wrote, perhaps with another commit on top of it.
	return fmt.Errorf("it is not known whether the changes were made: %w", err)
}

// write returns the call that makes the changes.
func (s *Store) write(changes []store.Change) func(context.Context) error {
	if len(changes) > 1 || changes[0].Action == store.ActionCheck {
		// The token is the same in every try: if an earlier try has landed, DynamoDB answers a
		// later one with success, and does nothing.
		in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(rand.Text())}
		for _, c := range changes {
			in.TransactItems = append(in.TransactItems, s.item(c))
		}
		return writing(s.client.TransactWriteItems, in)
	}
	w := s.item(changes[0])
	if p := w.Put; p != nil {
		return writing(s.client.PutItem, &dynamodb.PutItemInput{
			TableName: p.TableName, Item: p.Item,
			ConditionExpression: p.ConditionExpression, ExpressionAttributeValues: p.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: p.ReturnValuesOnConditionCheckFailure,
		})
	}
	d := w.Delete
	return writing(s.client.DeleteItem, &dynamodb.DeleteItemInput{
		TableName: d.TableName, Key: d.Key,
		ConditionExpression: d.ConditionExpression, ExpressionAttributeValues: d.ExpressionAttributeValues,
	})
}

// writing returns one try of a call, of whose answer only the error counts.
func writing[In, Out any](
	call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), in *In,
) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := call(ctx, in, once)
		return err
	}
}

// item returns one change with its condition, in the form of a transaction's item.
func (s *Store) item(c store.Change) types.TransactWriteItem {
	condition := "attribute_not_exists(" + AttributePartition + ")"
	var values item
	if was := c.Record.Version; was != 0 {
		condition, values = AttributeVersion+" = :was", item{":was": number(was)}
	}
	switch c.Action {
	case store.ActionPut:
		next := c.Record
		next.Version++
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &s.table, Item: encode(next),
			ConditionExpression: &condition, ExpressionAttributeValues: values,
			// With the old item, a try can tell whether it has met its own work.
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	case store.ActionDelete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &s.table, Key: itemKey(c.Record.Key),
			ConditionExpression: &condition, ExpressionAttributeValues: values,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &s.table, Key: itemKey(c.Record.Key),
			ConditionExpression: &condition, ExpressionAttributeValues: values,
		}}
	}
}

// conflict returns an ErrConflict that names the changed record, if that is known.
func conflict(changes []store.Change, at int) error {
	if at >= len(changes) {
		return store.ErrConflict
	}
	r := changes[at].Record
	return fmt.Errorf("record %q of %q is not at version %d: %w", r.Sort, r.Partition, r.Version, store.ErrConflict)
}

// landed reports whether one of the items that conditions met is as these changes write it. A
// commit lands as a whole or not at all, so one item is enough.
func landed(changes []store.Change, found map[int]item) bool {
	for n, i := range found {
		if n >= len(changes) || changes[n].Action != store.ActionPut {
			continue
		}
		r, err := decode(i)
		if mine := changes[n].Record; err == nil && mine.Writer != "" && r.Writer == mine.Writer && r.Version == mine.Version+1 {
			return true
		}
	}
	return false
}
