package awserr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/awserr"
)

func TestOf(t *testing.T) {
	said := func(code, message string) error {
		return fmt.Errorf("operation: %w", &smithy.GenericAPIError{Code: code, Message: message})
	}
	for _, tc := range []struct {
		err  error
		want awserr.Class
	}{
		{nil, awserr.None},
		{errors.New("connection reset"), awserr.Passing},
		{said("InternalFailure", ""), awserr.Passing},
		{said("ValidationError", "Stack with id longshore-x does not exist"), awserr.Absent},
		{said("ValidationError", "Stack [x] does not exist"), awserr.Absent},
		{said("ValidationError", "No updates are to be performed."), awserr.Unchanged},
		{said("ValidationError", "Stack:arn:x is in UPDATE_IN_PROGRESS state and can not be updated."), awserr.Busy},
		{said("ValidationError", "Stack [x] cannot be deleted while in status UPDATE_IN_PROGRESS"), awserr.Busy},
		{said("ValidationError", "Stack:x is in ROLLBACK_COMPLETE state and can not be updated."), awserr.Busy},
		{said("ValidationError", "Rate exceeded"), awserr.Throttled},
		{said("ValidationError", "Parameters: [X] must have values"), awserr.Invalid},
		{said("AlreadyExistsException", ""), awserr.Exists},
		{said("LimitExceededException", ""), awserr.Quota},
		{said("AccessDenied", "User: x is not authorized"), awserr.Denied},
		{said("InvalidClientTokenId", ""), awserr.Login},
		{said("Throttling", "Rate exceeded"), awserr.Throttled},
		{said("NoSuchEntity", ""), awserr.Absent},
		{said("ResourceNotFoundException:http://internal.amazon.com/x", ""), awserr.Absent},
	} {
		if got := awserr.Of(tc.err); got != tc.want {
			t.Errorf("%v is %q, want %q", tc.err, got, tc.want)
		}
	}
}
