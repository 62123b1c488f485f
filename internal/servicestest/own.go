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
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// Own is the service of an operator's own that a page explains: its four files, which
// stand there in blocks of code, are written into a folder of their own below dir.
func Own(page, dir string) (Service, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return Service{}, err
	}
	dir = filepath.Join(dir, "app-log")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Service{}, err
	}
	for _, name := range []string{"offering.yaml", "template.yaml", "permissions.json", "policy.json"} {
		_, after, _ := strings.Cut(string(text), "**`"+name+"`**")
		_, after, _ = strings.Cut(after, "\n```")
		_, body, _ := strings.Cut(after, "\n")
		body, _, found := strings.Cut(body, "\n```")
		if !found {
			return Service{}, fmt.Errorf("%s shows no %s", page, name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body+"\n"), 0o644); err != nil {
			return Service{}, err
		}
	}
	return Service{Offering: "app-log", Plan: "standard", Credentials: []string{"log_group"}, Use: useLog, Change: changedLog}, nil
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
