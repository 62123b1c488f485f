package cloudformation

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
)

// A listing answers for CloudFormation, which lists these stacks in one page.
type listing []string

// Do is a client's of HTTP.
func (l *listing) Do(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, err
	}
	names := *l
	if ref := form.Get("StackName"); ref != "" {
		names = listing{strings.TrimPrefix(ref, "id-of-")}
	}
	var members strings.Builder
	for _, name := range names {
		fmt.Fprintf(&members, "<member><StackId>id-of-%[1]s</StackId><StackName>%[1]s</StackName>"+
			"<StackStatus>CREATE_COMPLETE</StackStatus></member>", name)
	}
	action := form.Get("Action")
	list := map[string]string{"ListStacks": "StackSummaries", "DescribeStacks": "Stacks"}[action]
	body := fmt.Sprintf("<%[1]sResponse><%[1]sResult><%[2]s>%[3]s</%[2]s></%[1]sResult></%[1]sResponse>", action, list,
		members.String())
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		Request: r}, nil
}

// Stacks go while an inventory goes on, those of others too: what stays is in it.
func TestStacksGoWhileTheyAreListed(t *testing.T) {
	for name, gone := range map[string]int{"Others": 0, "OurOwn": 1, "TheNext": listPage + 1} {
		all := listing{"somebody-elses"}
		for i := range 2 * listPage {
			all = append(all, fmt.Sprintf("ours-%d", i))
		}
		a := &account{stacks: cfn.New(cfn.Options{
			Region: "eu-central-1", HTTPClient: &all, BaseEndpoint: aws.String("http://cloudformation.invalid"),
			Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
		})}
		ours := func(name string) bool { return strings.HasPrefix(name, "ours-") }
		page, next, err := a.list(t.Context(), ours, "")
		if err != nil || len(page) != listPage || next == "" {
			t.Fatalf("%s: %d stacks, and then %q, %v", name, len(page), next, err)
		}
		all = slices.Delete(all, gone, gone+1)
		for next != "" {
			var more []*stack
			if more, next, err = a.list(t.Context(), ours, next); err != nil {
				t.Fatal(err)
			}
			page = append(page, more...)
		}
		for _, want := range all[1:] {
			if !slices.ContainsFunc(page, func(s *stack) bool { return s.name == want }) {
				t.Errorf("%s: when a stack has gone, %s is left out", name, want)
			}
		}
	}
}
