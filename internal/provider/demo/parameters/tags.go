package parameters

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/longshore/longshore/internal/base/provider"
)

// tagsOf are the tags of a parameter, which say whose it is to whoever looks
// from outside. The broker itself reads what the thing says.
func tagsOf(t provider.Tags) []types.Tag {
	var tags []types.Tag
	for _, l := range t.Labels() {
		tags = append(tags, types.Tag{Key: aws.String(l.Name), Value: aws.String(l.Value)})
	}
	return tags
}
