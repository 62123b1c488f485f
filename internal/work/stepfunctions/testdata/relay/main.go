// Command relay is a Lambda function that asks an HTTP server what to answer:
// the tests are that server, and so can be the code of a deployed function.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve ends when what runs functions is gone.
func serve() error {
	runtime := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	for {
		next, err := http.Get(runtime + "next")
		if err != nil {
			return err
		}
		event, err := read(next)
		if err != nil {
			return err
		}
		id := next.Header.Get("Lambda-Runtime-Aws-Request-Id")
		body, err := ask(event)
		path := id + "/response"
		if err != nil {
			path = id + "/error"
			// A thrown error is written as its type, a space and its text.
			kind, text, _ := strings.Cut(strings.TrimSpace(err.Error()), " ")
			body, err = json.Marshal(map[string]string{"errorType": kind, "errorMessage": text})
			if err != nil {
				return err
			}
		}
		answer, err := http.Post(runtime+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		if _, err := read(answer); err != nil {
			return err
		}
	}
}

func ask(event []byte) ([]byte, error) {
	answer, err := http.Post(os.Getenv("RELAY_URL"), "application/json", bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	body, err := read(answer)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", body)
	}
	return body, err
}

func read(answer *http.Response) ([]byte, error) {
	body, err := io.ReadAll(answer.Body)
	if e := answer.Body.Close(); err == nil {
		err = e
	}
	return body, err
}
