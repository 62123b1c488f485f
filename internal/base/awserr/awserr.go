// Package awserr classifies errors of AWS by what the caller has to do: by code, and by
// patterns of the message if AWS uses one code for several things. Patterns match words and
// never whole sentences, which differ between regions, versions and emulators.
package awserr

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
)

// A Class says what to do about an error.
type Class string

// The classes. An error without a rule is Passing: the call is made again.
const (
	None      Class = ""          // no error
	Passing   Class = "passing"   // nothing is known of the call: it may have been done
	Throttled Class = "throttled" // too many calls: it was not done
	Absent    Class = "absent"    // the thing does not exist
	Exists    Class = "exists"    // the thing to make exists already
	Unchanged Class = "unchanged" // there is nothing to update
	Busy      Class = "busy"      // the thing's state does not allow the call now
	Denied    Class = "denied"    // the caller may not do it: an operator has to act
	Login     Class = "login"     // the caller's key is unknown, inactive, or expired
	Quota     Class = "quota"     // a limit of the account is reached: an operator has to act
	Invalid   Class = "invalid"   // such a call can never succeed
)

// byCode holds the codes that mean one thing in every service that has them. They are from
// types/errors.go of each service's package in the SDK, from the common errors of each API's
// reference, and, for S3, from its list of error codes; throttling is as in aws/retry of the
// SDK. HeadBucket and HeadObject have no body, and so codes of their own. Codes that are not
// listed are Passing, as are failures of AWS itself.
var byCode = map[Class][]string{
	Throttled: {
		"Throttling", "ThrottlingException", "ThrottledException", "Throttled", "TooManyRequestsException",
		"RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "SlowDown", "PriorRequestNotComplete",
		"ProvisionedThroughputExceededException", "BandwidthLimitExceeded", "LimitExceededRate", "EC2ThrottledException",
		"KMSThrottling", "KMSThrottlingException", "KMS.ThrottlingException", "KmsThrottled",
	},
	Absent: {
		"NoSuchEntity", "NoSuchEntityException", "NoSuchBucket", "NoSuchKey", "NoSuchUpload", "NoSuchVersion",
		"NoSuchBucketPolicy", "NoSuchTagSet", "NoSuchTagSetError", "NotFound", "NotFoundException", "ResourceNotFound",
		"ResourceNotFoundException", "StackNotFoundException", "StackInstanceNotFoundException", "ChangeSetNotFound",
		"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "TableNotFoundException",
	},
	Exists: {
		"AlreadyExistsException", "NameAlreadyExistsException", "EntityAlreadyExists", "EntityAlreadyExistsException",
		"BucketAlreadyExists", "BucketAlreadyOwnedByYou", "ResourceExistsException", "ResourceAlreadyExistsException",
		"QueueAlreadyExists", "QueueNameExists", "TableAlreadyExistsException",
	},
	Busy: {
		"OperationInProgressException", "ConcurrentModification", "ConcurrentModificationException", "ConcurrentAccess",
		"ConcurrentAccessException", "ConflictException", "DeleteConflict", "DeleteConflictException", "BucketNotEmpty",
		"InvalidBucketState", "OperationAborted", "ResourceInUseException", "TableInUseException",
		"EntityTemporarilyUnmodifiable", "EntityTemporarilyUnmodifiableException", "InvalidChangeSetStatus",
		"InvalidStateTransition", "StaleRequestException", "TokenAlreadyExistsException", "QueueDeletedRecently",
		"AWS.SimpleQueueService.QueueDeletedRecently", "PurgeQueueInProgress",
		"AWS.SimpleQueueService.PurgeQueueInProgress", "StaleTag", "StaleTagException", "IllegalStatusException",
		"InvalidStateException", "KMSInvalidStateException", "DisabledException", "PreconditionNotMetException",
		"TransactionInProgressException", "PreconditionFailed", "ConditionalRequestConflict",
	},
	Denied: {
		"AccessDenied", "AccessDeniedException", "Forbidden", "AllAccessDisabled", "AccountProblem", "NotSignedUp",
		"OptInRequired", "UnauthorizedOperation", "NotAuthorized", "AuthorizationError", "AuthorizationErrorException",
		"KMSAccessDenied", "KMSAccessDeniedException", "KmsAccessDenied", "KMSOptInRequired", "KmsOptInRequired",
		"InvalidSecurity", "InsufficientCapabilitiesException", "InsufficientCapabilities", "RegionDisabledException",
		"ManagedRuleException", "PublicPolicyException", "UnmodifiableEntity", "ConstraintViolationException", "TagPolicy",
		"TagPolicyException",
	},
	Login: {
		"InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken",
		"ExpiredTokenException", "InvalidSignatureException", "IncompleteSignature", "MissingAuthenticationToken", "InvalidToken",
		"RequestExpired", "AuthFailure", "TokenRefreshRequired", "InvalidIdentityToken",
	},
	Quota: {
		"ServiceQuotaExceededException", "TooManyBuckets", "StackLimitExceeded", "AccountLimitExceeded", "OverLimit",
		"ConcurrentResourcesLimitExceeded", "TopicLimitExceeded", "TopicLimitExceededException", "SubscriptionLimitExceeded",
		"SubscriptionLimitExceededException", "PolicyLengthExceededException", "TagLimitExceeded", "TagLimitExceededException",
	},
	Invalid: {
		"MalformedPolicyDocument", "MalformedPolicyDocumentException", "MalformedPolicy", "InvalidInput", "InvalidParameter",
		"InvalidParameterException", "InvalidParameterValue", "InvalidParameterCombination", "InvalidArgumentException",
		"InvalidAttributeName", "InvalidAttributeValue", "InvalidBucketName", "InvalidArnException", "InvalidAliasNameException",
		"InvalidEventPatternException", "MissingParameter", "PolicyNotAttachable", "PackedPolicyTooLarge", "UnsupportedOperation",
		"UnsupportedOperationException", "TagException", "TypeNotFoundException",
	},
}

// A rule gives a class to an error whose message matches the pattern.
type rule struct {
	pattern string
	class   Class
}

// byMessage holds rules for codes that mean several things, above all CloudFormation's
// ValidationError; the first rule that matches counts. Messages also contain names of users'
// parameters, so a pattern is more than a word that may be such a name. A pattern is compiled for
// each error that it is needed for, since such errors are few.
var byMessage = map[string][]rule{
	"ValidationError": validation, "ValidationException": validation,
	"LimitExceeded": limit, "LimitExceededException": limit,
	"InvalidRequest": request, "InvalidRequestException": request,
}

var (
	validation = []rule{
		{`(?i)\bstack\b.*(does ?n[o']t exist|not found)|\bdoes ?n[o']t exist for stack\b`, Absent},
		{`(?i)no updates? (are|is) to be performed|nothing to update`, Unchanged},
		{`(?i)rate exceeded|throttl`, Throttled},
		{`(?i)termination ?protection`, Denied}, // a person has protected the stack
		{`[A-Z]+_IN_PROGRESS|(?i)(is|are) in [A-Z_]+ state|while in status|` +
			`can ?not be (updated|deleted|called)|currently in [A-Z_]+`, Busy},
		{`(?i)\b(limit|quota)\b.*\bexceeded|\bexceed\w*\b.*\b(limit|quota)|maximum number of`, Quota},
		{`(?i)not authorized|cannot be assumed|access denied`, Denied},
		{``, Invalid},
	}
	// With this code, IAM, KMS and CloudFormation mean a quota of the account, Kinesis a
	// rate, and DynamoDB a number of simultaneous operations.
	limit = []rule{
		{`(?i)\brate\b|too many (requests|calls)|throttl|concurrent|simultaneous|in parallel|try again|retry`, Throttled},
		{``, Quota},
	}
	// Secrets Manager uses this code for states, and for calls that can never succeed.
	request = []rule{
		{`(?i)(marked|scheduled) for deletion|currently|in progress`, Busy},
		{``, Invalid},
	}
)

// Of returns an error's class; None for nil.
func Of(err error) Class {
	if err == nil {
		return None
	}
	var said smithy.APIError
	if !errors.As(err, &said) {
		return Passing // an error of the network, or of a context that has ended
	}
	code, _, _ := strings.Cut(said.ErrorCode(), ":") // some services add an address
	for class, codes := range byCode {
		if slices.Contains(codes, code) {
			return class
		}
	}
	for _, rule := range byMessage[code] {
		if regexp.MustCompile(rule.pattern).MatchString(said.ErrorMessage()) {
			return rule.class
		}
	}
	return Passing
}

// Is reports whether an error's class is one of the given classes.
func Is(err error, classes ...Class) bool {
	return slices.Contains(classes, Of(err))
}
