package servicestest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// Own is the service of an operator's own that docs/cloudformation.md explains. Its
// folder is in docs/examples.
func Own() Service {
	standard := Plan{Name: "standard", Use: useLog, Given: `{"retention_days":90}`, Changed: `{"retention_days":7}`,
		OnDelete: plan.Empty}
	role := standard
	role.Name, role.Role = "role", true
	return Service{Offering: "app-log", Credentials: []string{"log_group"}, Plans: []Plan{standard, role}, See: seeLog}
}

// Written is the service that `longshore catalog new --cloudformation` writes.
func Written() Service {
	s := Own()
	s.Offering, s.Plans = "first-log", s.Plans[:1]
	return s
}

func useLog(ctx context.Context, c aws.Config, got map[string]string) error {
	stream := fmt.Sprintf("s-%d", time.Now().UnixNano())
	at := map[string]any{"logGroupName": got["log_group"], "logStreamName": stream}
	if _, err := callLogs(ctx, c, "CreateLogStream", at); err != nil {
		return err
	}
	line := map[string]any{"timestamp": time.Now().UnixMilli(), "message": said}
	put := map[string]any{"logGroupName": got["log_group"], "logStreamName": stream, "logEvents": []any{line}}
	if _, err := callLogs(ctx, c, "PutLogEvents", put); err != nil {
		return err
	}
	read, err := callLogs(ctx, c, "GetLogEvents", at)
	if err != nil {
		return err
	}
	var lines struct{ Events []struct{ Message string } }
	if err := json.Unmarshal(read, &lines); err != nil || len(lines.Events) != 1 {
		return fmt.Errorf("read %d lines: %w", len(lines.Events), err)
	}
	return same(lines.Events[0].Message)
}

// callLogs makes one call of CloudWatch Logs, whose client nothing else here needs.
func callLogs(ctx context.Context, c aws.Config, action string, body any) ([]byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, *c.BaseEndpoint+"/", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Logs_20140328."+action)
	key, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), "logs", c.Region, time.Now()); err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		var refusal struct {
			Type string `json:"__type"`
		}
		_ = json.Unmarshal(said, &refusal) // without a type it is an error all the same
		err = &smithy.GenericAPIError{Code: refusal.Type[strings.LastIndex(refusal.Type, "#")+1:], Message: string(said)}
	}
	return said, err
}
