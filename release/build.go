package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A platform is a system that a program is built for, as Go names it.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

var (
	platforms = []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}}
	functions = []string{"api", "provisioner", "reaper"}
)

// lambdaArch has the names that AWS Lambda gives to architectures.
var lambdaArch = map[string]string{"amd64": "x86_64", "arm64": "arm64"}

// A release is everything that is made from one state of the sources.
type release struct {
	root, out, version string
	// offer is the provider whose offerings the stack of the release's template has.
	offer string
	// time is the time of the commit: every file bears it.
	time      time.Time
	platforms []platform
	// scratch holds the programs while they are packed.
	scratch string
}

// A program is a built program that is not packed yet.
type program struct {
	platform
	content []byte
}

// papers are the documents that accompany every program.
type papers struct{ licence, third, readme []byte }

// make writes everything but the checksums. It empties the folder first: a file of an earlier
// version would be signed, too.
func (r *release) make(ctx context.Context) (err error) {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp("", "longshore-release-"); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(r.scratch)) }()
	beside, err := r.papers(ctx)
	if err != nil {
		return err
	}
	built, err := r.programs(ctx, beside)
	if err != nil {
		return err
	}
	if err := r.zips(ctx); err != nil {
		return err
	}
	if err := r.image(built, beside); err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	for _, p := range built {
		if err := r.deb(p, beside); err != nil {
			return fmt.Errorf("making the Debian package: %w", err)
		}
	}
	installer, err := os.ReadFile(filepath.Join(r.root, "install.sh"))
	return r.write("install.sh", installer, err)
}

// write writes a file of the release, unless its content could not be made.
func (r *release) write(name string, content []byte, err error) error {
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// papers reads the documents; it also writes the licences of others to a file of their own.
func (r *release) papers(ctx context.Context) (p papers, err error) {
	if p.licence, err = os.ReadFile(filepath.Join(r.root, "LICENSE")); err != nil {
		return p, err
	}
	if p.readme, err = os.ReadFile(filepath.Join(r.root, "README.md")); err != nil {
		return p, err
	}
	p.third, err = r.licences(ctx)
	return p, r.write("THIRD-PARTY-LICENSES", p.third, err)
}

// programs builds and packs the program for each platform, and returns those for Linux.
func (r *release) programs(ctx context.Context, beside papers) (linux []program, err error) {
	for _, on := range r.platforms {
		name := fmt.Sprintf("longshore_%s_%s", r.version, on)
		p, err := r.build(ctx, on, name, "./cmd/longshore", "-ldflags", "-s -w -X main.version="+r.version)
		if err != nil {
			return nil, err
		}
		archive, err := tarGz([]file{
			{name: name + "/longshore", mode: 0o755, content: p.content},
			{name: name + "/LICENSE", mode: 0o644, content: beside.licence},
			{name: name + "/THIRD-PARTY-LICENSES", mode: 0o644, content: beside.third},
			{name: name + "/README.md", mode: 0o644, content: beside.readme},
		}, r.time)
		if err := r.write(name+".tar.gz", archive, err); err != nil {
			return nil, err
		}
		if on.os == "linux" {
			linux = append(linux, p)
		}
	}
	return linux, nil
}

// zips builds and packs the functions, in the form that AWS Lambda requires, and the template that deploys them.
func (r *release) zips(ctx context.Context) error {
	var catalogs map[string][]byte
	for _, on := range r.platforms {
		if on.os != "linux" {
			continue
		}
		arch := lambdaArch[on.arch]
		dir := filepath.Join(r.scratch, "functions-"+arch)
		programs := map[string][]byte{}
		for _, function := range functions {
			name := strings.TrimSuffix(r.zip(function, arch), ".zip")
			p, err := r.build(ctx, on, name, "./functions/"+function, "-tags", "lambda.norpc", "-ldflags", "-s -w")
			if err != nil {
				return err
			}
			programs[function] = p.content
			if err := os.MkdirAll(filepath.Join(dir, function), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, function, bootstrap), p.content, 0o755); err != nil {
				return err
			}
		}
		if catalogs == nil { // the catalog is the same for both architectures
			var err error
			if catalogs, err = r.stack(ctx, dir, arch); err != nil {
				return fmt.Errorf("making the template: %w", err)
			}
		}
		for function, program := range programs {
			files := []file{{name: bootstrap, mode: 0o755, content: program}}
			if c := catalogs[function]; c != nil {
				files = append(files, file{name: "catalog.dat", mode: 0o644, content: c})
			}
			packed, err := zipped(files, r.time)
			if err := r.write(r.zip(function, arch), packed, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// build compiles a program, and writes the list of the modules that it consists of, as the linker noted
// them in the program. The tool that writes the list runs on this machine, not on the program's platform.
func (r *release) build(ctx context.Context, on platform, name, pkg string, flags ...string) (program, error) {
	path := filepath.Join(r.scratch, name)
	args := slices.Concat([]string{"build", "-o", path}, flags, []string{pkg})
	if _, err := output(ctx, r.root, on.environment(), goCommand(), args...); err != nil {
		return program{}, err
	}
	_, err := output(ctx, filepath.Join(r.root, "release"), fixed, goCommand(), "tool", "cyclonedx-gomod", "bin", "-json",
		"-noserial", "-notimestamp", "-std", "-version", r.version, "-output", filepath.Join(r.out, name+".cdx.json"), path)
	if err != nil {
		return program{}, err
	}
	content, err := os.ReadFile(path)
	return program{on, content}, err
}

func (p platform) environment() []string {
	return append([]string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch}, fixed...)
}

// fixed are the settings for every call of Go, whatever the settings of the machine: each of them
// would change the bytes of a program.
var fixed = []string{
	"GOFLAGS=-mod=readonly -buildvcs=false -trimpath -gcflags=maragu.dev/gomponents/...=-l",
	"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
}
