package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/longshore/longshore/internal/test/expect"
)

// listed reads an archive: mode, owner and name of each file. Every file is of the release's time.
func listed(t *testing.T, archive io.Reader) (files []string, read map[string][]byte) {
	t.Helper()
	read = map[string][]byte{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, read
		}
		expect.OK(t, err)
		if !h.ModTime.Equal(at) {
			t.Errorf("%s is of %v", h.Name, h.ModTime)
		}
		files = append(files, strings.Fields(h.FileInfo().Mode().String())[0]+" "+strings.Repeat("n", min(h.Uid, 1))+" "+h.Name)
		read[h.Name] = expect.Get(io.ReadAll(r))(t)
	}
}

// The image starts the program as a user without rights, and holds nothing that it does not need.
func TestImage(t *testing.T) {
	archive := expect.Get(os.Open(filepath.Join(made(t).out, "longshore_v0.1.0_oci.tar")))(t)
	defer archive.Close()
	_, blobs := listed(t, archive)
	dir := t.TempDir()
	for name, content := range blobs {
		write(t, filepath.Join(dir, name), content)
	}
	image := imageFrom(t, dir)
	config := expect.Get(image.ConfigFile())(t)
	c := config.Config
	_, volume := c.Volumes["/data"]
	if c.User != "65532:65532" || !volume || !slices.Equal(c.Entrypoint, []string{"/longshore"}) ||
		config.OS != here.os || config.Architecture != here.arch || !config.Created.Equal(at) {
		t.Errorf("the image is %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content := expect.Get(layers[0].Uncompressed())(t)
	files, read := listed(t, content)
	want := []string{"drwx------ n data/", "-rw-r--r--  etc/ssl/certs/ca-certificates.crt", "-rw-r--r--  licenses/LICENSE",
		"-rw-r--r--  licenses/THIRD-PARTY-LICENSES", "-rwxr-xr-x  longshore"}
	expect.Same(t, "what the image holds", want, files)
	if n := bytes.Count(read["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")); n < 80 {
		t.Errorf("the image has only %d certificates", n)
	}
}

// imageFrom is the image for this machine in the index that a layout names by the version.
func imageFrom(t *testing.T, dir string) v1.Image {
	t.Helper()
	outer := expect.Get(layout.ImageIndexFromPath(dir))(t)
	names, err := outer.IndexManifest()
	if err != nil || len(names.Manifests) != 1 || names.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("the layout names %+v, %v", names, err)
	}
	index := expect.Get(outer.ImageIndex(names.Manifests[0].Digest))(t)
	expect.OK(t, validate.Index(index))
	images, err := index.IndexManifest()
	if err != nil || len(images.Manifests) != 1 || images.Manifests[0].Platform.Architecture != here.arch {
		t.Fatalf("the index names %+v, %v", images, err)
	}
	return expect.Get(index.Image(images.Manifests[0].Digest))(t)
}

// AWS Lambda starts what is called bootstrap, if it may be executed.
func TestZip(t *testing.T) {
	r := expect.Get(zip.OpenReader(filepath.Join(made(t).out, "longshore-api_v0.1.0_"+lambdaArch[here.arch]+".zip")))(t)
	defer r.Close()
	for i, want := range []os.FileMode{0o755, 0o644} { // the program and its catalog
		if f := r.File[i]; f.Mode() != want || !f.Modified.Equal(at) {
			t.Errorf("%s is %v, of %v", f.Name, f.Mode(), f.Modified)
		}
	}
}

// dpkg reads the package, and systemd its unit.
func TestDebianPackage(t *testing.T) {
	deb := filepath.Join(made(t).out, "longshore_0.1.0_"+here.arch+".deb")
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb")
	}
	info := expect.Get(output(t.Context(), "", nil, "dpkg-deb", "--info", deb))(t)
	expect.Says(t, "the package", info, "Package: longshore", "Version: 0.1.0\n", "Architecture: "+here.arch, "postinst", "prerm",
		"conffiles")
	list := expect.Get(output(t.Context(), "", nil, "dpkg-deb", "--contents", deb))(t)
	expect.Says(t, "what the package holds", list+"\n", "-rwxr-xr-x 0/0", "./usr/bin/longshore\n",
		"./usr/lib/systemd/system/longshore.service\n", "./usr/share/doc/longshore/copyright\n", "-rw------- 0/0")
	root := t.TempDir()
	expect.Get(output(t.Context(), "", nil, "dpkg-deb", "--extract", deb, root))(t)
	said := expect.Get(output(t.Context(), "", nil, filepath.Join(root, "usr/bin/longshore"), "version"))(t)
	expect.Same(t, "the program says", "longshore version v0.1.0", said)
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze")
	}
	// The program is not installed here.
	path := filepath.Join(root, "usr/lib/systemd/system/longshore.service")
	write(t, path, bytes.ReplaceAll(read(t, path), []byte("/usr/bin/longshore"), []byte("/bin/true")))
	if said, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("the unit: %v\n%s", err, said)
	}
}

// To Debian, a version that is tried before the release comes before it.
func TestDebianVersions(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3~rc.1", "v1.2.3-a-b": "1.2.3~a-b"} {
		expect.Same(t, version+" is", want, debianVersion(version))
	}
}
