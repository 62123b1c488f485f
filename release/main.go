// Command release makes everything that is published as a version of Longshore: archives and
// packages of the program, the zips of the functions, an image, lists of their contents, and
// checksums. It owns the forms and names of these files, and needs Go, Node.js, git and ssh-keygen.
// Two runs over the same sources write the same bytes; docs/release.md says how to check that.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := release{platforms: platforms}
	flags.StringVar(&r.root, "root", "..", "`DIR` of the repository")
	flags.StringVar(&r.out, "out", "../dist/release", "`DIR` that is written anew")
	flags.StringVar(&r.version, "version", "", "`VERSION`, such as v0.1.0")
	flags.StringVar(&r.offer, "offer", "", "`PROVIDER` whose offerings the template's stack has")
	key := flags.String("key", "", "`FILE` with the SSH key that signs the checksums")
	draft := flags.Bool("draft", false, "take sources that are not committed, or whose tag is another one")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if err := checkVersion(r.version); err != nil {
		return err
	}
	if *key != "" { // checked now, since it is needed only after minutes
		if *key, err = filepath.Abs(*key); err != nil {
			return err
		}
		if _, err := os.Stat(*key); err != nil {
			return fmt.Errorf("KEY: %w", err)
		}
	}
	if !*draft {
		if err := checkSources(ctx, r.root, r.version); err != nil {
			return err
		}
	}
	if r.time, err = timeOf(ctx, r.root, getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	if err := writeSums(r.out); err != nil {
		return err
	}
	return sign(ctx, r.out, *key)
}

// checkVersion refuses versions that Go and Debian would order differently, or not at all.
func checkVersion(version string) error {
	if semver.Canonical(version) != version || version == "" {
		return fmt.Errorf("VERSION is %q, and must be a semantic version with a leading v, such as VERSION=v0.1.0", version)
	}
	return nil
}

// checkSources refuses sources that cannot be checked out again under the name of the version.
func checkSources(ctx context.Context, root, version string) error {
	changed, err := output(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the tree has changes that are not committed: commit them, or try with DRAFT=1\n%s", changed)
	}
	tags, err := output(ctx, root, nil, "git", "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	for tag := range strings.Lines(tags + "\n") {
		if strings.TrimSpace(tag) == version {
			return nil
		}
	}
	return fmt.Errorf("the commit does not have the tag %s: run git tag -s %s, or try with DRAFT=1", version, version)
}

// timeOf returns the time for every file of the release: SOURCE_DATE_EPOCH, or the time of the commit.
func timeOf(ctx context.Context, root, epoch string) (time.Time, error) {
	if epoch == "" {
		var err error
		if epoch, err = output(ctx, root, nil, "git", "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is seconds since 1970, not %q", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// output runs a command in a folder with additional environment variables, and returns its trimmed output.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	raw, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// goCommand returns the Go command that make was told to use.
func goCommand() string { return cmp.Or(os.Getenv("GO"), "go") }
