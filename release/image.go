package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user that the image runs as. The image has no file of users that would name it.
const nonroot = 65532

// image writes an index with one image for each program, as an archive of an OCI layout.
func (r *release) image(programs []program, beside papers) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		made, err := r.imageOf(p, beside)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.os, Architecture: p.arch},
		}})
	}
	dir := filepath.Join(r.scratch, "image")
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	tag := map[string]string{"org.opencontainers.image.ref.name": r.version}
	if err := written.AppendIndex(index, layout.WithAnnotations(tag)); err != nil {
		return err
	}
	var files []file
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		files = append(files, file{name: path, mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return err
	}
	archive, err := packed(files, r.time)
	return r.write(fmt.Sprintf("longshore_%s_oci.tar", r.version), archive, err)
}

// certificates returns the certificate authorities of Mozilla, in the version that go.mod pins. It
// leaves out authorities that Mozilla trusts for some certificates only: a file cannot say for which.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if c, err := x509.ParseCertificate(root.Certificate); err == nil {
			fmt.Fprintf(&b, "# %s\n", c.Subject)
		}
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	return b.Bytes()
}

// imageOf returns the image of one program, with a single layer. Its user may write only to the
// data folder, whose owner and mode a new volume inherits.
func (r *release) imageOf(p program, beside papers) (v1.Image, error) {
	raw, err := packed([]file{
		{name: "longshore", mode: 0o755, content: p.content},
		{name: "data/", mode: 0o700, owner: nonroot},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		{name: "licenses/LICENSE", mode: 0o644, content: beside.licence},
		{name: "licenses/THIRD-PARTY-LICENSES", mode: 0o644, content: beside.third},
	}, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	layered, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: r.time}, CreatedBy: "make release",
	}})
	if err != nil {
		return nil, err
	}
	config, err := layered.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", nonroot, nonroot),
		Entrypoint: []string{"/longshore"},
		Cmd:        []string{"serve", "--listen", "0.0.0.0:8080", "--data", "/data"},
		WorkingDir: "/data",
		Volumes:    map[string]struct{}{"/data": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Longshore",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/longshore/longshore",
		},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	}
	return mutate.ConfigFile(layered, config)
}
