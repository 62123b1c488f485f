package store

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxPartition = 2048
	maxSort      = 1024
)

// CheckKey returns ErrInvalid for a key that no record can have. Adapters call it, or one of
// the two functions below, before they do anything else.
func CheckKey(k Key) error {
	if k.Sort == "" {
		return Invalidf("sort key is empty")
	}
	return checkBounds(k.Partition, k.Sort)
}

// CheckList returns ErrInvalid for arguments that List does not take.
func CheckList(partition, prefix, after string, limit int) error {
	switch {
	case after != "" && !strings.HasPrefix(after, prefix):
		return Invalidf("sort key %q to go on after does not start with %q", after, prefix)
	case limit < 0:
		return Invalidf("limit is %d", limit)
	}
	return cmp.Or(checkBounds(partition, prefix), checkBounds(partition, after))
}

func checkBounds(partition, sort string) error {
	switch {
	case partition == "":
		return Invalidf("partition is empty")
	case len(partition) > maxPartition:
		return Invalidf("partition has %d bytes, at most %d", len(partition), maxPartition)
	case len(sort) > maxSort:
		return Invalidf("sort key has %d bytes, at most %d", len(sort), maxSort)
	}
	return checkText(partition, sort)
}

// CheckChanges returns ErrInvalid for changes that Commit does not take.
func CheckChanges(changes []Change) error {
	if len(changes) == 0 || len(changes) > MaxChanges {
		return Invalidf("not 1 to %d changes", MaxChanges)
	}
	seen := map[Key]bool{}
	for _, c := range changes {
		r := c.Record
		if err := CheckKey(r.Key); err != nil {
			return err
		}
		if seen[r.Key] {
			return Invalidf("two changes of record %q of %q", r.Sort, r.Partition)
		}
		seen[r.Key] = true
		switch c.Action {
		case ActionCheck, ActionDelete:
		case ActionPut:
			if len(r.Body) > MaxBody {
				return Invalidf("body of record %q of %q has %d bytes, at most %d", r.Sort, r.Partition, len(r.Body), MaxBody)
			}
			if err := checkText(r.Writer); err != nil {
				return err
			}
		default:
			return Invalidf("unknown action %d", c.Action)
		}
	}
	return nil
}

// Invalidf returns an ErrInvalid that says what is wrong with the call.
func Invalidf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrInvalid)
}

// checkText refuses bytes that some stores would silently replace.
func checkText(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return Invalidf("%q is not UTF-8", text)
		}
	}
	return nil
}
