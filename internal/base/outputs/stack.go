package outputs

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/longshore/longshore/internal/base/advice"
)

// Stacks is the method of *cloudformation.Client that Of calls.
type Stacks interface {
	DescribeStacks(ctx context.Context, in *cloudformation.DescribeStacksInput,
		opts ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error)
}

// ErrNone says that the stack does not have the outputs of a broker.
var ErrNone = errors.New("it is not a broker's, or its last deployment has failed")

// Of reads all outputs of a stack.
func Of(ctx context.Context, client Stacks, name string) (map[string]string, error) {
	out, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return nil, &advice.Error{Name: fmt.Sprintf("stack %q", name), What: "cannot be read",
			Remedy: "see that this is its name, and that AWS_PROFILE and AWS_REGION lead to its account and region", Cause: err}
	}
	said := map[string]string{}
	for _, s := range out.Stacks {
		for _, o := range s.Outputs {
			said[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
		}
	}
	for _, want := range []string{API, URL, Secret, Table} {
		if said[want] == "" {
			return nil, fmt.Errorf("stack %q has no output %q: %w", name, want, ErrNone)
		}
	}
	return said, nil
}
