package deployed_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

// The real functions, started without their settings, end at once and name a missing one.
func TestColdStartsWithoutSettings(t *testing.T) {
	for function, name := range map[string]string{"api": app.EnvTable, "provisioner": app.EnvKey, "reaper": app.EnvStateMachine} {
		t.Run(function, func(t *testing.T) {
			binary, source := filepath.Join(t.TempDir(), "bootstrap"), "../../../functions/"+function
			// The go command keeps the result of a test for the files that the test has read.
			expect.Get(os.ReadDir(source))(t)
			built(t, binary, source, "-tags", "lambda.norpc")
			checkClients(t, binary, clients[function])
			cmd := exec.Command(binary)
			cmd.Env = []string{"AWS_REGION=us-east-1", "PATH=" + os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true"}
			out, err := cmd.CombinedOutput()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), name) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// built builds a program with flags.
func built(t testing.TB, binary, source string, flags ...string) {
	t.Helper()
	build := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", binary, source})...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	expect.OK(t, err, "building", source, string(out))
}

// clients are those of AWS services that each function links, beside those by which the SDK
// finds its credentials: every start loads them.
var clients = map[string][]string{
	"api": {"dynamodb", "kms", "lambda", "secretsmanager", "sfn"},
	"provisioner": {"cloudformation", "dynamodb", "eventbridge", "iam", "kinesis", "kms", "lambda",
		"resourcegroupstaggingapi", "s3", "secretsmanager", "sqs"},
	"reaper": {"cloudformation", "dynamodb", "iam", "lambda", "s3", "secretsmanager", "sfn"},
}

func checkClients(t *testing.T, binary string, want []string) {
	t.Helper()
	symbols := expect.Get(exec.Command("go", "tool", "nm", binary).Output())(t)
	has := map[string]bool{}
	for _, found := range regexp.MustCompile(`aws-sdk-go-v2/service/([a-z0-9]+)\.\(\*Client\)`).FindAllSubmatch(symbols, -1) {
		has[string(found[1])] = true
	}
	want = slices.Sorted(slices.Values(append(want, "signin", "sso", "ssooidc", "sts")))
	expect.Same(t, "clients", want, slices.Sorted(maps.Keys(has)))
}
