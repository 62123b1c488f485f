package cloudformation

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

// answered is an account whose calls a handler answers.
func answered(t *testing.T, h http.Handler) account {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	config := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	return account{s3: s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }),
		dynamo: dynamodb.NewFromConfig(config), stacks: cfn.NewFromConfig(config)}
}

// oddBucket answers as S3 does, and no emulator: it writes a key as it is into its XML, also where XML has no such
// character, unless it is asked to escape keys.
type oddBucket map[string]bool

func (b oddBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	switch {
	case r.Method == http.MethodDelete:
		delete(b, strings.TrimPrefix(r.URL.Path, "/bucket/"))
	case asked.Has("delete"):
		var in struct {
			Object []struct{ Key string }
		}
		if err := xml.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		for _, o := range in.Object {
			delete(b, o.Key)
		}
		_, _ = fmt.Fprint(w, `<DeleteResult/>`)
	default:
		_, _ = fmt.Fprintf(w, `<ListVersionsResult><EncodingType>%s</EncodingType>`, asked.Get("encoding-type"))
		for key := range b {
			said := url.QueryEscape(key)
			if !asked.Has("encoding-type") {
				said = ""
				for _, letter := range key {
					said += fmt.Sprintf("&#x%x;", letter)
				}
			}
			_, _ = fmt.Fprintf(w, `<Version><Key>%s</Key><VersionId>1</VersionId></Version>`, said)
		}
		_, _ = fmt.Fprint(w, `</ListVersionsResult>`)
	}
}

// Applications choose any keys, also with characters that XML lacks: their bucket is seen to be full, and is emptied.
func TestKeysThatXMLLacks(t *testing.T) {
	for _, key := range []string{"a b+c%20/d", "two\r\nlines", "\x01", "bell\a/é", "\uffff"} {
		b := oddBucket{key: true, "plain": true}
		a := answered(t, b)
		expect.Same(t, key, "objects, or versions of objects", expect.Get(a.bucketHolds(t.Context(), "bucket"))(t, key))
		done := false
		for range 2 {
			done = expect.Get(a.emptyBucket(t.Context(), "bucket"))(t, key)
		}
		if !done || len(b) > 0 {
			t.Errorf("%q: done %v, and left is %v", key, done, b)
		}
	}
	// Many such keys take a call each: a step removes as many as its time is enough for.
	b := oddBucket{}
	for n := range 2*oneByOne + 1 {
		b[fmt.Sprint("\x01", n)] = true
	}
	a := answered(t, b)
	for _, left := range []int{oneByOne + 1, 1, 0} {
		done := expect.Get(a.emptyBucket(t.Context(), "bucket"))(t)
		expect.Same(t, "left", left, len(b))
		expect.Same(t, "done", false, done)
	}
	expect.Same(t, "done", true, expect.Get(a.emptyBucket(t.Context(), "bucket"))(t))
}

// Templates are neither read from nor written to a bucket that another account has taken.
func TestTemplatesOfAnotherAccount(t *testing.T) {
	kept := map[string]string{}
	a := answered(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Amz-Expected-Bucket-Owner") != "111111111111":
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			kept[r.URL.Path] = string(body)
		default:
			_, _ = io.WriteString(w, kept[r.URL.Path])
		}
	}))
	ours, theirs := bucket{"templates", "111111111111"}, bucket{"templates", "222222222222"}
	body := []byte("{}")
	expect.OK(t, a.save(t.Context(), ours, plan.Digest(body), body))
	expect.Same(t, "the template", "{}", string(expect.Get(a.fetch(t.Context(), ours, plan.Digest(body)))(t)))
	for what, err := range map[string]error{
		"saving":  a.save(t.Context(), theirs, plan.Digest(body), body),
		"reading": expect.Err(a.fetch(t.Context(), theirs, plan.Digest(body))),
	} {
		expect.Same(t, what+" a template in another account's bucket", awserr.Denied, awserr.Of(err))
	}
}

// An item that was written a moment ago is seen: a plan that refuses would delete it otherwise.
func TestLateItemsCount(t *testing.T) {
	a := answered(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ConsistentRead bool }
		_ = json.NewDecoder(r.Body).Decode(&in)
		_, _ = fmt.Fprintf(w, `{"Count":%d}`, map[bool]int{true: 1}[in.ConsistentRead]) // other reads may miss it
	}))
	expect.Same(t, "holds", "items", expect.Get(a.tableHolds(t.Context(), "table"))(t))
}

// A listing answers for CloudFormation, which lists these stacks in one page.
type listing []string

func (l *listing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	names := *l
	if ref := r.FormValue("StackName"); ref != "" {
		names = listing{strings.TrimPrefix(ref, "id-of-")}
	}
	action := r.FormValue("Action")
	list := map[string]string{"ListStacks": "StackSummaries", "DescribeStacks": "Stacks"}[action]
	_, _ = fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult><%[2]s>", action, list)
	for _, name := range names {
		_, _ = fmt.Fprintf(w, "<member><StackId>id-of-%[1]s</StackId><StackName>%[1]s</StackName>"+
			"<StackStatus>CREATE_COMPLETE</StackStatus></member>", name)
	}
	_, _ = fmt.Fprintf(w, "</%[2]s></%[1]sResult></%[1]sResponse>", action, list)
}

// Stacks go while an inventory goes on, those of others too: what stays is in it.
func TestStacksGoWhileTheyAreListed(t *testing.T) {
	for name, gone := range map[string]int{"Others": 0, "OurOwn": 1, "TheNext": listPage + 1} {
		all := listing{"somebody-elses"}
		for i := range 2 * listPage {
			all = append(all, fmt.Sprintf("ours-%d", i))
		}
		a := answered(t, &all)
		ours := func(name string) bool { return strings.HasPrefix(name, "ours-") }
		page, next, err := a.list(t.Context(), ours, "")
		if err != nil || len(page) != listPage || next == "" {
			t.Fatalf("%s: %d stacks, and then %q, %v", name, len(page), next, err)
		}
		all = slices.Delete(all, gone, gone+1)
		for next != "" {
			var more []*stack
			more, next, err = a.list(t.Context(), ours, next)
			expect.OK(t, err)
			page = append(page, more...)
		}
		for _, want := range all[1:] {
			if !slices.ContainsFunc(page, func(s *stack) bool { return s.name == want }) {
				t.Errorf("%s: when a stack has gone, %s is left out", name, want)
			}
		}
	}
}
