package cloudformation

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

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
		server := httptest.NewServer(b)
		t.Cleanup(server.Close)
		a := account{s3: s3.NewFromConfig(aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
			Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, func(o *s3.Options) { o.UsePathStyle = true })}
		expect.Same(t, key, "objects, or versions of objects", expect.Get(a.bucketHolds(t.Context(), "bucket"))(t, key))
		done := false
		for range 2 {
			done = expect.Get(a.emptyBucket(t.Context(), "bucket"))(t, key)
		}
		if !done || len(b) > 0 {
			t.Errorf("%q: done %v, and left is %v", key, done, b)
		}
	}
}

// Many such keys take a call each: a step removes as many as its time is enough for.
func TestManyKeysThatXMLLacks(t *testing.T) {
	b := oddBucket{}
	for n := range 2*oneByOne + 1 {
		b[fmt.Sprint("\x01", n)] = true
	}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	a := account{s3: s3.NewFromConfig(aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, func(o *s3.Options) { o.UsePathStyle = true })}
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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	t.Cleanup(server.Close)
	a := account{s3: s3.NewFromConfig(aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}, func(o *s3.Options) { o.UsePathStyle = true })}
	ours, theirs := bucket{"templates", "111111111111"}, bucket{"templates", "222222222222"}
	body := []byte("{}")
	expect.OK(t, a.save(t.Context(), ours, plan.Digest(body), body))
	expect.Same(t, "the template", "{}", string(expect.Get(a.fetch(t.Context(), ours, plan.Digest(body)))(t)))
	if err := a.save(t.Context(), theirs, plan.Digest(body), body); !awserr.Is(err, awserr.Denied) {
		t.Errorf("another account's bucket takes a template: %v", err)
	}
	if _, err := a.fetch(t.Context(), theirs, plan.Digest(body)); !awserr.Is(err, awserr.Denied) {
		t.Errorf("a template of another account's bucket is read: %v", err)
	}
}

// An item that was written a moment ago is seen: a plan that refuses would delete it otherwise.
func TestLateItemsCount(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ConsistentRead bool }
		_ = json.NewDecoder(r.Body).Decode(&in)
		_, _ = fmt.Fprintf(w, `{"Count":%d}`, map[bool]int{true: 1}[in.ConsistentRead]) // other reads may miss it
	}))
	t.Cleanup(server.Close)
	a := account{dynamo: dynamodb.NewFromConfig(aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})}
	expect.Same(t, "holds", "items", expect.Get(a.tableHolds(t.Context(), "table"))(t))
}
