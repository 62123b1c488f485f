package parameters

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/longshore/longshore/internal/provider"
)

// The tags of a parameter, which say whose it is to whoever looks from
// outside. The broker itself reads what the thing says.
const (
	TagPlatform    = "longshore:platform"
	TagInstance    = "longshore:instance"
	TagBinding     = "longshore:binding" // on what belongs to a binding
	TagIncarnation = "longshore:incarnation"
)

// tagsOf leaves out what is empty.
func tagsOf(t provider.Tags) []types.Tag {
	var tags []types.Tag
	for _, tag := range []struct{ key, value string }{
		{TagPlatform, t.Platform}, {TagInstance, t.Instance}, {TagBinding, t.Binding}, {TagIncarnation, t.Incarnation},
	} {
		if tag.value != "" {
			tags = append(tags, types.Tag{Key: aws.String(tag.key), Value: aws.String(TagValue(tag.value))})
		}
	}
	return tags
}

const (
	maxTag     = 256
	tagLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 +-=._:/@"
	// What cannot stand as it is begins with one of these.
	encodedMark = "="  // then base64url
	hashedMark  = "==" // then base64url of the SHA-256, of what is too long
)

// TagValue is an id as the value of a tag. Tags take few characters, and ids
// any: most ids stand as they are, others encoded, and those that are too long
// as a hash. No two ids have the same value.
func TagValue(id string) string {
	if len(id) <= maxTag && strings.Trim(id, tagLetters) == "" && id == strings.TrimSpace(id) &&
		!strings.HasPrefix(id, encodedMark) && !strings.HasPrefix(strings.ToLower(id), "aws:") {
		return id
	}
	if encoded := encodedMark + base64.RawURLEncoding.EncodeToString([]byte(id)); len(encoded) <= maxTag {
		return encoded
	}
	sum := sha256.Sum256([]byte(id))
	return hashedMark + base64.RawURLEncoding.EncodeToString(sum[:])
}
