package bolt

import (
	"fmt"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/store"
)

const (
	maxPartition = 2048
	maxSort      = 1024
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), store.ErrInvalid)
}

func checkKey(k store.Key) error {
	if k.Sort == "" {
		return invalid("sort key is empty")
	}
	return checkPrefix(k.Partition, k.Sort)
}

func checkPrefix(partition, sort string) error {
	switch {
	case partition == "":
		return invalid("partition is empty")
	case len(partition) > maxPartition:
		return invalid("partition has %d bytes, at most %d", len(partition), maxPartition)
	case len(sort) > maxSort:
		return invalid("sort key has %d bytes, at most %d", len(sort), maxSort)
	}
	return checkText(partition, sort)
}

// checkText refuses what JSON would silently replace.
func checkText(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return invalid("%q is not UTF-8", text)
		}
	}
	return nil
}

func checkChanges(changes []store.Change) error {
	if len(changes) == 0 || len(changes) > store.MaxChanges {
		return invalid("not 1 to %d changes", store.MaxChanges)
	}
	seen := map[store.Key]bool{}
	for _, c := range changes {
		r := c.Record
		if err := checkKey(r.Key); err != nil {
			return err
		}
		if seen[r.Key] {
			return invalid("two changes of record %q of %q", r.Sort, r.Partition)
		}
		seen[r.Key] = true
		switch c.Action {
		case store.ActionCheck, store.ActionDelete:
		case store.ActionPut:
			if len(r.Body) > store.MaxBody {
				return invalid("body of record %q of %q has %d bytes, at most %d", r.Sort, r.Partition, len(r.Body), store.MaxBody)
			}
			if err := checkText(r.Writer, r.Account, r.Region); err != nil {
				return err
			}
		default:
			return invalid("unknown action %d", c.Action)
		}
	}
	return nil
}

// writes reports whether any of the changes changes something.
func writes(changes []store.Change) bool {
	for _, c := range changes {
		if c.Action != store.ActionCheck {
			return true
		}
	}
	return false
}
