package awserr_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	cloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	dynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	eventbridge "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	iam "github.com/aws/aws-sdk-go-v2/service/iam/types"
	kinesis "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	kms "github.com/aws/aws-sdk-go-v2/service/kms/types"
	s3 "github.com/aws/aws-sdk-go-v2/service/s3/types"
	secretsmanager "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	sns "github.com/aws/aws-sdk-go-v2/service/sns/types"
	sqs "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	sts "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/test/expect"
)

// Codes that the SDK names are spelled as there.
func TestOfWhatTheSDKNames(t *testing.T) {
	for want, all := range map[awserr.Class][]smithy.APIError{
		awserr.Throttled: {&sqs.RequestThrottled{}, &sns.ThrottledException{}, &eventbridge.ThrottlingException{},
			&dynamodb.ThrottlingException{}, &dynamodb.RequestLimitExceeded{}, &kinesis.ProvisionedThroughputExceededException{},
			&kinesis.KMSThrottlingException{}, &sns.KMSThrottlingException{}, &sqs.KmsThrottled{}},
		awserr.Absent: {&cloudformation.StackNotFoundException{}, &cloudformation.ChangeSetNotFoundException{},
			&iam.NoSuchEntityException{}, &s3.NoSuchBucket{}, &s3.NoSuchKey{}, &s3.NotFound{}, &sqs.QueueDoesNotExist{},
			&sqs.ResourceNotFoundException{},
			&sns.NotFoundException{}, &sns.ResourceNotFoundException{}, &kinesis.ResourceNotFoundException{},
			&eventbridge.ResourceNotFoundException{}, &dynamodb.ResourceNotFoundException{}, &dynamodb.TableNotFoundException{},
			&kms.NotFoundException{}, &secretsmanager.ResourceNotFoundException{}},
		awserr.Exists: {&cloudformation.AlreadyExistsException{}, &iam.EntityAlreadyExistsException{}, &s3.BucketAlreadyExists{},
			&s3.BucketAlreadyOwnedByYou{}, &sqs.QueueNameExists{}, &eventbridge.ResourceAlreadyExistsException{},
			&kms.AlreadyExistsException{}, &secretsmanager.ResourceExistsException{}, &dynamodb.TableAlreadyExistsException{}},
		awserr.Busy: {&cloudformation.OperationInProgressException{}, &cloudformation.TokenAlreadyExistsException{},
			&iam.DeleteConflictException{}, &iam.ConcurrentModificationException{}, &iam.EntityTemporarilyUnmodifiableException{},
			&sqs.QueueDeletedRecently{}, &sqs.PurgeQueueInProgress{}, &sns.ConcurrentAccessException{}, &sns.StaleTagException{},
			&kinesis.ResourceInUseException{}, &dynamodb.ResourceInUseException{}, &dynamodb.TableInUseException{},
			&eventbridge.ConcurrentModificationException{}, &kms.KMSInvalidStateException{}, &kms.DisabledException{},
			&kms.ConflictException{}, &secretsmanager.PreconditionNotMetException{}},
		awserr.Denied: {&cloudformation.InsufficientCapabilitiesException{}, &iam.UnmodifiableEntityException{},
			&s3.AccessDenied{}, &sts.RegionDisabledException{}, &sqs.InvalidSecurity{}, &sqs.KmsAccessDenied{},
			&sns.AuthorizationErrorException{}, &sns.KMSAccessDeniedException{}, &kinesis.AccessDeniedException{},
			&kinesis.KMSOptInRequired{},
			&eventbridge.ManagedRuleException{}, &secretsmanager.PublicPolicyException{}, &sns.TagPolicyException{}},
		awserr.Login: {&sts.ExpiredTokenException{}, &sts.InvalidIdentityTokenException{}},
		awserr.Quota: {&cloudformation.LimitExceededException{}, &iam.LimitExceededException{}, &kms.LimitExceededException{},
			&secretsmanager.LimitExceededException{}, &sqs.OverLimit{}, &sns.TopicLimitExceededException{},
			&sns.SubscriptionLimitExceededException{}, &eventbridge.PolicyLengthExceededException{},
			&sns.TagLimitExceededException{}},
		awserr.Invalid: {&iam.MalformedPolicyDocumentException{}, &iam.InvalidInputException{},
			&iam.PolicyNotAttachableException{}, &sts.PackedPolicyTooLargeException{}, &sqs.InvalidAttributeValue{},
			&sqs.UnsupportedOperation{}, &sns.InvalidParameterException{}, &kinesis.InvalidArgumentException{},
			&kinesis.ValidationException{}, &eventbridge.InvalidEventPatternException{}, &kms.InvalidArnException{},
			&kms.TagException{}, &kms.MalformedPolicyDocumentException{}, &secretsmanager.InvalidParameterException{},
			&secretsmanager.InvalidRequestException{}, &s3.InvalidRequest{}},
		awserr.Passing: {&iam.ServiceFailureException{}, &secretsmanager.InternalServiceError{}, &kms.KMSInternalException{},
			&dynamodb.InternalServerError{}, &kms.DependencyTimeoutException{}},
	} {
		for _, err := range all {
			expect.Same(t, fmt.Sprintf("%T (%s)", err, err.ErrorCode()), want, awserr.Of(fmt.Errorf("operation: %w", err)))
		}
	}
}

// Every answer of AWS has one class.
func FuzzOf(f *testing.F) {
	f.Add("ValidationError", "Stack [x] does not exist")
	f.Add("LimitExceeded", "Cannot exceed quota")
	f.Add("InvalidRequestException", "")
	f.Add(":", "\xff(?i)")
	known := []awserr.Class{awserr.Passing, awserr.Throttled, awserr.Absent, awserr.Exists, awserr.Unchanged, awserr.Busy,
		awserr.Denied, awserr.Login, awserr.Quota, awserr.Invalid}
	f.Fuzz(func(t *testing.T, code, message string) {
		err := error(&smithy.GenericAPIError{Code: code, Message: message})
		class := awserr.Of(err)
		if !slices.Contains(known, class) || awserr.Of(fmt.Errorf("wrapped: %w", err)) != class || !awserr.Is(err, class) {
			t.Errorf("%q %q is %q", code, message, class)
		}
	})
}

func TestOf(t *testing.T) {
	said := func(code, message string) error {
		return fmt.Errorf("operation: %w", &smithy.GenericAPIError{Code: code, Message: message})
	}
	for _, err := range []error{errors.New("connection reset"), said("InternalFailure", ""), said("ServiceFailure", "")} {
		expect.Same(t, err.Error(), awserr.Passing, awserr.Of(err))
	}
	expect.Same(t, "no error", awserr.None, awserr.Of(nil))
	for want, all := range map[awserr.Class][][2]string{
		awserr.Absent: {{"ValidationError", "Stack with id longshore-x does not exist"},
			{"ValidationError", "Stack [x] does not exist"}, {"NoSuchEntity", ""},
			{"ResourceNotFoundException:http://internal.amazon.com/x", ""},
			{"ValidationError", "Resource Queue does not exist for stack longshore-x"}},
		awserr.Unchanged: {{"ValidationError", "No updates are to be performed."}},
		awserr.Busy: {{"ValidationError", "Stack:arn:x is in UPDATE_IN_PROGRESS state and can not be updated."},
			{"ValidationError", "Stack [x] cannot be deleted while in status UPDATE_IN_PROGRESS"},
			{"ValidationError", "Stack:x is in ROLLBACK_COMPLETE state and can not be updated."},
			{"ValidationError", "Stack:arn:x is in UPDATE_ROLLBACK_FAILED state and can not be updated."},
			{"ValidationError", "CancelUpdateStack cannot be called from current stack status"},
			{"InvalidRequestException",
				"You can't create this secret because a secret with this name is already scheduled for deletion."},
			{"AWS.SimpleQueueService.QueueDeletedRecently", "You must wait 60 seconds"},
			{"PreconditionFailed", "At least one of the pre-conditions you specified did not hold"}},
		awserr.Throttled: {{"ValidationError", "Rate exceeded"}, {"Throttling", "Rate exceeded"},
			{"LimitExceededException", "Rate exceeded for stream x under account 1."},
			{"LimitExceededException",
				"Subscriber limit exceeded: Only 500 tables can be created, updated, or deleted simultaneously"}},
		awserr.Invalid: {{"ValidationError", "Parameters: [X] must have values"},
			{"ValidationError", "Parameters: [StackLimit] do not exist in the template"},
			{"ValidationError", "Parameters: [QuotaBytes, Limit] must have values"},
			{"ValidationError", "Template format error: Number of resources, 502, is greater than maximum allowed, 500"},
			{"ValidationException", "One or more parameter values were invalid: Limit"},
			{"InvalidRequestException", "You can't perform this operation"}},
		awserr.Exists: {{"AlreadyExistsException", ""}},
		awserr.Quota: {{"LimitExceededException", ""}, {"LimitExceededException", "Limit for stack has been exceeded"},
			{"LimitExceeded", "Cannot exceed quota for AccessKeysPerUser: 2"},
			{"LimitExceeded", "Maximum policy size of 2048 bytes exceeded for user x"}},
		awserr.Denied: {{"AccessDenied", "User: x is not authorized"}, {"Forbidden", ""},
			{"ValidationError", "Stack [x] cannot be deleted while TerminationProtection is enabled"},
			{"ValidationError", "Role arn:aws:iam::1:role/x is invalid or cannot be assumed"}},
		awserr.Login: {{"InvalidClientTokenId", ""}},
	} {
		for _, e := range all {
			expect.Same(t, e[0]+" "+e[1], want, awserr.Of(said(e[0], e[1])))
		}
	}
}
