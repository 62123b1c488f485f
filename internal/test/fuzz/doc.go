// Package fuzz sends made-up requests to every handler of the whole broker, over records
// in memory and on a clock that the test moves. Whatever comes, the answer is a JSON
// object and never a 5xx, the same request is answered again, and in the end nothing runs
// and nothing exists that no record owns.
package fuzz
