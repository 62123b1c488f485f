//go:build deployed

package localstack_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore/longshore/internal/base/outputs"
)

// canary is in the parameters of what these tests order.
const canary = "canary-d41c-of-the-deployed-tests"

// secrets are what must not be told anywhere: the canary, each password of a
// platform, and each password and URI that a binding was given.
var secrets = struct {
	sync.Mutex
	known map[string]string // what it is
}{known: map[string]string{canary: "a parameter"}}

func keep(what, secret string) {
	secrets.Lock()
	defer secrets.Unlock()
	if len(secret) >= 8 { // a shorter one would be found by chance
		secrets.known[secret] = what
	}
}

var secretNames = regexp.MustCompile(`password|secret_access_key|uri`)

// keepCredentials remembers the secrets of an answer to a binding.
func keepCredentials(v any) {
	members, _ := v.(map[string]any)
	for name, v := range members {
		text, ok := v.(string)
		if !ok {
			keepCredentials(v)
		} else if secretNames.MatchString(name) {
			keep("a binding's "+name, text)
		}
	}
}

// TestMain looks, when all is done, into everything that the stack has written down for others to read. After a failure it
// prints what the functions logged as errors: the emulator takes its logs with it.
func TestMain(m *testing.M) {
	keep("the platform's password", os.Getenv("BROKER_PASSWORD"))
	code := m.Run()
	if os.Getenv("BROKER_URL") != "" {
		logged, err := nothingIsTold(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, "looking for secrets:", err)
			code = max(code, 1)
		} else if code != 0 {
			fmt.Fprintln(os.Stderr, "errors that the functions have logged, of which faults that tests make are some:")
			fmt.Fprint(os.Stderr, strings.Join(logged, ""))
		}
	}
	os.Exit(code)
}

// A watch counts what it looks at, and collects what it finds: each secret once.
type watch struct {
	known  map[string]string
	looked map[string]int
	errs   []error
	logged []string // the lines that tell of errors
}

func (w *watch) look(where, text string) {
	w.looked[where]++
	for secret, what := range w.known {
		if at := strings.Index(text, secret); at >= 0 {
			w.errs = append(w.errs, fmt.Errorf("%s: %s is told: ...%q", where, what, text[max(0, at-100):at]))
			delete(w.known, secret)
		}
	}
}

// nothingIsTold looks into each function's log, where its metrics are too, the
// executions, the records and the dead letters. It gives the errors in the logs.
func nothingIsTold(ctx context.Context) (logged []string, _ error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	secrets.Lock()
	w := &watch{known: maps.Clone(secrets.known), looked: map[string]int{}}
	secrets.Unlock()
	said, err := outputs.Of(ctx, cloudformation.NewFromConfig(cfg), theStack)
	made, failed := resourcesOf(ctx, cfg, theStack)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	err = errors.Join(
		w.logs(ctx, cloudwatchlogs.NewFromConfig(cfg), logGroups(made)),
		w.executions(ctx, sfn.NewFromConfig(cfg), said[outputs.StateMachine]),
		w.records(ctx, dynamodb.NewFromConfig(cfg), said[outputs.Table]),
		w.letters(ctx, sqs.NewFromConfig(cfg), said[outputs.DeadLetters]),
	)
	for name, value := range said {
		w.look("an output of the stack", name+"="+value)
	}
	fmt.Printf("looked for %d secrets in %v\n", len(secrets.known), w.looked)
	must := []string{"a line of a log", "an output of the stack"}
	if flag.Lookup("test.run").Value.String() == "" { // of chosen tests, none may have made anything
		must = append(must, "a record", "an execution")
		if bound := len(secrets.known) > 2; !bound { // the canary and the platform's password
			err = errors.Join(err, errors.New("no binding's credentials are looked for"))
		}
	}
	for _, where := range must {
		if w.looked[where] == 0 {
			err = errors.Join(err, fmt.Errorf("not looked at: %s", where))
		}
	}
	return w.logged, errors.Join(append(w.errs, err)...)
}

// logGroups are the stack's, and those that functions write to where an emulator does not let them write to the stack's.
func logGroups(made []cfntypes.StackResource) (groups []string) {
	for _, r := range made {
		switch id := aws.ToString(r.PhysicalResourceId); aws.ToString(r.ResourceType) {
		case "AWS::Logs::LogGroup":
			groups = append(groups, id)
		case "AWS::Lambda::Function":
			groups = append(groups, "/aws/lambda/"+id)
		}
	}
	return groups
}

func (w *watch) logs(ctx context.Context, client *cloudwatchlogs.Client, groups []string) error {
	for _, group := range groups {
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(client, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil && strings.Contains(err.Error(), "ResourceNotFoundException") {
				break
			}
			if err != nil {
				return fmt.Errorf("reading log %q: %w", group, err)
			}
			for _, e := range page.Events {
				line := aws.ToString(e.Message)
				w.look("a line of a log", line)
				if strings.Contains(line, `"level":"ERROR"`) {
					w.logged = append(w.logged, strings.TrimSpace(line)+"\n")
				}
			}
		}
	}
	return nil
}

func (w *watch) executions(ctx context.Context, client *sfn.Client, machine string) error {
	pages := sfn.NewListExecutionsPaginator(client, &sfn.ListExecutionsInput{StateMachineArn: &machine})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing executions: %w", err)
		}
		for _, e := range page.Executions {
			x, err := client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.ExecutionArn})
			if err != nil {
				return fmt.Errorf("reading an execution: %w", err)
			}
			w.look("an execution", aws.ToString(x.Input)+"\n"+aws.ToString(x.Output)+"\n"+aws.ToString(x.Error)+"\n"+
				aws.ToString(x.Cause))
		}
	}
	return nil
}

func (w *watch) records(ctx context.Context, client *dynamodb.Client, table string) error {
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("reading the table: %w", err)
		}
		for _, item := range page.Items {
			text := ""
			for _, v := range item {
				switch v := v.(type) {
				case *types.AttributeValueMemberS:
					text += v.Value + "\n"
				case *types.AttributeValueMemberB:
					text += string(v.Value) + "\n"
				}
			}
			w.look("a record", text)
		}
	}
	return nil
}

func (w *watch) letters(ctx context.Context, client *sqs.Client, queue string) error {
	found, err := messages(ctx, client, queue)
	for _, text := range found {
		w.look("a dead letter", text)
	}
	if errors.Is(err, errOnlyTLS) {
		return nil
	}
	return err
}

// errOnlyTLS: the queue's policy refuses whoever comes without TLS, as these tests do, and the emulator enforces it.
var errOnlyTLS = errors.New("dead letters can be read by TLS only")

// messages are what the queue holds, without taking it. Each is seen once.
func messages(ctx context.Context, client *sqs.Client, queue string) (texts []string, _ error) {
	seen := map[string]bool{}
	for range 20 {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &queue, MaxNumberOfMessages: 10, VisibilityTimeout: 2,
			AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
		})
		if err != nil && os.Getenv("AUTH") == "true" && strings.Contains(err.Error(), "AccessDenied") {
			return nil, errOnlyTLS
		}
		if err != nil {
			return texts, fmt.Errorf("reading the dead letters: %w", err)
		}
		if len(out.Messages) == 0 {
			break
		}
		for _, m := range out.Messages {
			if id := aws.ToString(m.MessageId); !seen[id] {
				seen[id], texts = true, append(texts, aws.ToString(m.Body))
			}
		}
	}
	return texts, nil
}
