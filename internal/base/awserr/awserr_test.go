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
			&iam.NoSuchEntityException{},
			&s3.NoSuchBucket{}, &s3.NoSuchKey{}, &s3.NotFound{}, &sqs.QueueDoesNotExist{}, &sqs.ResourceNotFoundException{},
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
			&s3.AccessDenied{},
			&sts.RegionDisabledException{}, &sqs.InvalidSecurity{}, &sqs.KmsAccessDenied{}, &sns.AuthorizationErrorException{},
			&sns.KMSAccessDeniedException{}, &kinesis.AccessDeniedException{}, &kinesis.KMSOptInRequired{},
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
		awserr.Denied,
		awserr.Login, awserr.Quota, awserr.Invalid}
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
		{said("ValidationError", "Resource Queue does not exist for stack longshore-x"), awserr.Absent},
		{said("ValidationError", "Parameters: [StackLimit] do not exist in the template"), awserr.Invalid},
		{said("ValidationError", "Parameters: [QuotaBytes, Limit] must have values"), awserr.Invalid},
		{said("ValidationError", "Template format error: Number of resources, 502, is greater than maximum allowed, 500"),
			awserr.Invalid},
		{said("ValidationError", "Stack:arn:x is in UPDATE_ROLLBACK_FAILED state and can not be updated."), awserr.Busy},
		{said("ValidationError", "CancelUpdateStack cannot be called from current stack status"), awserr.Busy},
		{said("ValidationError", "Stack [x] cannot be deleted while TerminationProtection is enabled"), awserr.Denied},
		{said("ValidationError", "Role arn:aws:iam::1:role/x is invalid or cannot be assumed"), awserr.Denied},
		{said("ValidationException", "One or more parameter values were invalid: Limit"), awserr.Invalid},
		{said("LimitExceededException", "Limit for stack has been exceeded"), awserr.Quota},
		{said("LimitExceeded", "Cannot exceed quota for AccessKeysPerUser: 2"), awserr.Quota},
		{said("LimitExceeded", "Maximum policy size of 2048 bytes exceeded for user x"), awserr.Quota},
		{said("LimitExceededException", "Rate exceeded for stream x under account 1."), awserr.Throttled},
		{said("LimitExceededException",
			"Subscriber limit exceeded: Only 500 tables can be created, updated, or deleted simultaneously"),
			awserr.Throttled},
		{said("InvalidRequestException",
			"You can't create this secret because a secret with this name is already scheduled for deletion."),
			awserr.Busy},
		{said("InvalidRequestException", "You can't perform this operation"), awserr.Invalid},
		{said("AWS.SimpleQueueService.QueueDeletedRecently", "You must wait 60 seconds"), awserr.Busy},
		{said("Forbidden", ""), awserr.Denied},
		{said("ServiceFailure", ""), awserr.Passing},
	} {
		expect.Same(t, fmt.Sprintf("%v", tc.err), tc.want, awserr.Of(tc.err))
	}
}
