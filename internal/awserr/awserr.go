// Package awserr says what an error of AWS means to whoever called: by its code,
// and by patterns of its message where AWS has one code for several things. Messages
// are matched by patterns and never by whole sentences: their words differ between
// regions, versions and emulators.
package awserr

import (
	"context"
	"errors"
	"net"
	"regexp"
	"strings"

	"github.com/aws/smithy-go"
)

// A Class is what to do about an error.
type Class string

// The classes. What no rule knows is Passing: it is asked again.
const (
	None      Class = ""          // no error
	Passing   Class = "passing"   // nothing is known of the call: it may have been done
	Throttled Class = "throttled" // too many calls: it was not done
	Absent    Class = "absent"    // what it is about does not exist
	Exists    Class = "exists"    // what it is to make is there already
	Unchanged Class = "unchanged" // there is nothing to update
	Busy      Class = "busy"      // what it is about is in a state that does not allow it now
	Denied    Class = "denied"    // the caller may not do it: an operator has to act
	Login     Class = "login"     // the caller's key is unknown, inactive, or expired
	Quota     Class = "quota"     // a limit of the account is reached: an operator has to act
	Invalid   Class = "invalid"   // it can never be done like this
)

// byCode are codes that mean one thing in every service that has them.
var byCode = map[Class][]string{
	Throttled: {
		"Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException", "RequestLimitExceeded",
		"RequestThrottled", "RequestThrottledException", "SlowDown", "PriorRequestNotComplete",
		"ProvisionedThroughputExceededException", "BandwidthLimitExceeded",
		"LimitExceededRate", "EC2ThrottledException",
	},
	Absent: {
		"NoSuchEntity", "NoSuchEntityException", "NoSuchBucket", "NoSuchKey", "NotFound", "NotFoundException",
		"ResourceNotFoundException",
		"StackNotFoundException", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "ChangeSetNotFound",
		"StackInstanceNotFoundException",
	},
	Exists: {
		"AlreadyExistsException", "EntityAlreadyExists", "EntityAlreadyExistsException", "BucketAlreadyExists", "BucketAlreadyOwnedByYou",
		"ResourceExistsException", "ResourceAlreadyExistsException", "QueueAlreadyExists",
	},
	Busy: {
		"OperationInProgressException", "ConcurrentModification", "ConcurrentModificationException", "DeleteConflict", "DeleteConflictException",
		"ResourceInUseException", "OperationAborted", "EntityTemporarilyUnmodifiable", "EntityTemporarilyUnmodifiableException",
		"InvalidChangeSetStatus", "TokenAlreadyExistsException",
	},
	Denied: {
		"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized", "AuthorizationError", "AuthorizationErrorException",
		"KMSAccessDeniedException", "InsufficientCapabilitiesException", "InsufficientCapabilities",
	},
	Login: {
		"InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken",
		"ExpiredTokenException", "InvalidSignatureException", "IncompleteSignature", "MissingAuthenticationToken", "InvalidToken",
		"RequestExpired",
	},
	Quota: {
		"LimitExceeded", "LimitExceededException", "ServiceQuotaExceededException", "TooManyBuckets", "StackLimitExceeded",
		"AccountLimitExceeded",
	},
	Invalid: {
		"MalformedPolicyDocument", "MalformedPolicyDocumentException", "InvalidInput", "InvalidParameterValue", "InvalidParameterCombination",
		"PolicyNotAttachable", "PackedPolicyTooLarge",
	},
}

// byMessage are for codes that mean several things, CloudFormation's ValidationError
// above all; the first that matches counts.
var byMessage = []struct {
	code, message *regexp.Regexp
	class         Class
}{
	{validation, regexp.MustCompile(`(?i)does ?n[o']t exist|not found`), Absent},
	{validation, regexp.MustCompile(`(?i)no updates? (are|is) to be performed|nothing to update`), Unchanged},
	{validation, regexp.MustCompile(`(?i)rate exceeded|throttl`), Throttled},
	{validation, regexp.MustCompile(`(?i)[A-Z]+_IN_PROGRESS|(is|are) in [A-Z_]+ state|while in status|can ?not be (updated|deleted|called)` +
		`|currently in [A-Z_]+`), Busy},
	{validation, regexp.MustCompile(`(?i)limit|quota|maximum number`), Quota},
	{validation, regexp.MustCompile(`(?i)not authorized|cannot be assumed|access denied`), Denied},
	{validation, regexp.MustCompile(``), Invalid},
}

var validation = regexp.MustCompile(`^Validation(Error|Exception)$`)

var classes = func() map[string]Class {
	all := map[string]Class{}
	for class, codes := range byCode {
		for _, code := range codes {
			all[code] = class
		}
	}
	return all
}()

// Of gives the class of an error; None for nil.
func Of(err error) Class {
	if err == nil {
		return None
	}
	var said smithy.APIError
	if !errors.As(err, &said) {
		return Passing // of the network, or of a context that ended
	}
	code, _, _ := strings.Cut(said.ErrorCode(), ":") // some services add an address
	if class, ok := classes[code]; ok {
		return class
	}
	for _, rule := range byMessage {
		if rule.code.MatchString(code) && rule.message.MatchString(said.ErrorMessage()) {
			return rule.class
		}
	}
	return Passing
}

// Is reports whether an error is of one of some classes.
func Is(err error, classes ...Class) bool {
	of := Of(err)
	for _, class := range classes {
		if of == class {
			return true
		}
	}
	return false
}

// Unsent reports whether a call certainly never reached AWS.
func Unsent(err error) bool {
	var refused *net.OpError
	return errors.As(err, &refused) && refused.Op == "dial" && !errors.Is(err, context.DeadlineExceeded)
}
