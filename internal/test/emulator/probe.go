package emulator

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// probe is what Probe makes.
const probe = `
import json, time, urllib.request
tries = {}
def handler(event, context):
    kind = event["RequestType"].lower()
    status = "SUCCESS"
    for props in (event["ResourceProperties"], event.get("OldResourceProperties", {})):
        for word in props.get("Do", "").split():
            verb, what = word.split("=")
            if verb == kind and what == "fail":
                status = "FAILED"
            elif verb == kind and what == "twice":
                tries[event["StackId"]] = tries.get(event["StackId"], 0) + 1
                status = "FAILED" if tries[event["StackId"]] <= 2 else status
            elif verb == kind and what == "bad":
                status = "FAILED" if props is event["ResourceProperties"] else status
            elif verb == kind and props is event["ResourceProperties"]:
                time.sleep(float(what))
    body = json.dumps({"Status": status, "Reason": "value of account 000000000000 is invalid", "PhysicalResourceId": "probe",
        "StackId": event["StackId"], "RequestId": event["RequestId"], "LogicalResourceId": event["LogicalResourceId"]}).encode()
    urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], data=body, method="PUT"))
`

// Probe is the ARN of a function behind a custom resource, which does what the
// resource's property Do says: "update=fail" fails each update to it and from it,
// "update=bad" each to it, "update=twice" the first two of a stack, and "create=2" takes
// two seconds for a creation. So any state of a stack can be made.
func Probe(t testing.TB) string {
	t.Helper()
	probing.Lock()
	defer probing.Unlock()
	if probing.arn != "" {
		return probing.arn
	}
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	w, err := z.Create("probe.py")
	if err == nil {
		_, err = w.Write([]byte(probe))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	out, err := lambda.NewFromConfig(Config(t)).CreateFunction(context.Background(), &lambda.CreateFunctionInput{
		FunctionName: aws.String(Name("probe")), Runtime: types.RuntimePython312, Handler: aws.String("probe.handler"),
		Role: aws.String("arn:aws:iam::000000000000:role/probe"), Timeout: aws.Int32(60),
		Code: &types.FunctionCode{ZipFile: file.Bytes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	probing.arn = aws.ToString(out.FunctionArn)
	return probing.arn
}

// probing holds the one function of a test process.
var probing struct {
	sync.Mutex
	arn string
}
