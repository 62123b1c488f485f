package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// Put the zips and the template into a bucket, create the stack from there as docs/release.md
// says, and the broker answers with the catalog that ships: the release needs nothing else.
func TestTheTemplateDeploys(t *testing.T) {
	r, config := made(t), emulator.Config(t)
	files := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	bucket := emulator.Name("release")
	expect.Get(files.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}))(t)
	const prefix, template = "longshore/", "longshore_" + version + "_template.json"
	arch, names := lambdaArch[here.arch], []string{template}
	for _, function := range functions {
		names = append(names, r.zip(function, arch))
	}
	for _, name := range names {
		expect.Get(files.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(prefix + name),
			Body: bytes.NewReader(read(t, r.out, name))}))(t, name)
	}

	stacks, stack := cfn.NewFromConfig(config), emulator.Name("Release")
	parameter := func(name, value string) types.Parameter {
		return types.Parameter{ParameterKey: &name, ParameterValue: &value}
	}
	expect.Get(stacks.CreateStack(t.Context(), &cfn.CreateStackInput{StackName: &stack,
		TemplateURL:  aws.String(*config.BaseEndpoint + "/" + bucket + "/" + prefix + template),
		Capabilities: []types.Capability{types.CapabilityCapabilityIam},
		Parameters: []types.Parameter{parameter("CodeBucket", bucket), parameter("CodePrefix", prefix),
			parameter("Architecture", arch)},
	}))(t)
	expect.OK(t, cfn.NewStackCreateCompleteWaiter(stacks).Wait(t.Context(), &cfn.DescribeStacksInput{StackName: &stack},
		5*time.Minute))
	said := expect.Get(outputs.Of(t.Context(), stacks, stack))(t)
	secret := expect.Get(secretsmanager.NewFromConfig(config).GetSecretValue(t.Context(),
		&secretsmanager.GetSecretValueInput{SecretId: aws.String(said[outputs.Secret])}))(t)
	var login struct{ Username, Password string }
	expect.OK(t, json.Unmarshal([]byte(aws.ToString(secret.SecretString)), &login))
	ask := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet,
		*config.BaseEndpoint+"/restapis/"+said[outputs.API]+"/prod/_user_request_/v2/catalog", nil))(t)
	ask.SetBasicAuth(login.Username, login.Password)
	ask.Header.Set("X-Broker-API-Version", "2.17")
	answer := expect.Get(http.DefaultClient.Do(ask))(t)
	defer func() { _ = answer.Body.Close() }()
	var catalog struct{ Services []struct{ Name string } }
	if err := json.NewDecoder(answer.Body).Decode(&catalog); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the catalog is answered %d: %v", answer.StatusCode, err)
	}
	offered := ""
	for _, s := range catalog.Services {
		offered += s.Name + " "
	}
	expect.Same(t, "so many services are offered", 8, len(catalog.Services))
	expect.Says(t, "the services", offered, "s3 ", "sqs ")
}
