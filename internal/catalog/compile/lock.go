package compile

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog"
)

// LockFile is a file in an offering's folder. It records which provider's files each version in
// maintenance_info stands for. Without it, an edited template under the same version would make
// instances that differ but claim to be the same.
const LockFile = "offering.lock"

// A locked is a version of a plan, with the digest of the files that it stands for.
type locked struct {
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// A lock holds an offering's lock file, as it was and as it should be, by plan id.
type lock struct {
	was, is map[string]locked
	renew   bool // new versions are accepted
}

// readLock reads the lock file of an offering; a missing file locks nothing.
func readLock(folder fs.FS, renew bool) (*lock, error) {
	l := &lock{is: map[string]locked{}, renew: renew}
	text, err := fs.ReadFile(folder, LockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l.was)
	}
	if err != nil {
		return l, &advice.Error{File: LockFile, What: "cannot be read: " + err.Error(),
			Remedy: "restore it, or remove it and run longshore catalog lock DIR"}
	}
	return l, nil
}

// check refuses a plan whose version stands for other files by now.
func (l *lock) check(p catalog.Plan, digest string) error {
	if p.MaintenanceInfo == nil {
		return nil
	}
	is, was := locked{p.MaintenanceInfo.Version, digest}, l.was[p.ID]
	l.is[p.ID] = is
	switch {
	case was == is, l.renew && was.Version != is.Version:
		return nil
	case was.Version == is.Version:
		return advice.For("/maintenance_info",
			"still has the version "+is.Version+", but the template has changed since",
			"raise the version, and run longshore catalog lock DIR")
	}
	return advice.For("/maintenance_info", "has the version "+is.Version+", which "+LockFile+" does not have",
		"run longshore catalog lock DIR")
}

// Lock returns the lock files of a folder's offerings, by their names in the folder. An offering
// has a lock file if one of its plans has a version, and files that the version stands for.
func Lock(o Options, folder Source) (map[string][]byte, error) {
	c := compiler{Options: o, kept: map[string][]byte{}, locks: map[string][]byte{}}
	c.source(folder)
	if len(c.problems) > 0 {
		return nil, sorted(c.problems)
	}
	return c.locks, nil
}

// file returns the lock file that the offering should have.
func (l *lock) file() []byte {
	text, _ := json.MarshalIndent(l.is, "", "  ") // texts can always be encoded
	return append(text, '\n')
}
