package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// here is what this machine can start; the tests build no more than that.
var here = platform{"linux", runtime.GOARCH}

const version = "v0.1.0"

// at is a time that the copied sources do not have.
var at = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "longshore-release-test-"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(status)
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	return expect.Get(os.ReadFile(filepath.Join(path...)))(t)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.OK(t, os.WriteFile(path, content, 0o644))
}

// exported copies the files that git knows of, or would add, into a folder.
func exported(to string) error {
	names, err := output(context.Background(), "..", nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(names, "\x00"), "\x00") {
		from := filepath.Join("..", name)
		info, err := os.Stat(from)
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// built makes the release of a copy of the sources, in a folder of that name.
func built(name string) (r release, err error) {
	r = release{root: filepath.Join(scratch, name), out: filepath.Join(scratch, name+"-out"), version: version, time: at,
		offer: "cloudformation", platforms: []platform{here}}
	if err = exported(r.root); err == nil {
		err = r.make(context.Background())
	}
	if err == nil {
		err = writeSums(r.out)
	}
	return r, err
}

var first = sync.OnceValues(func() (release, error) { return built("first") })

// made is the release that the tests look at.
func made(t *testing.T) release {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds programs")
	}
	return expect.Get(first())(t)
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, e := range expect.Get(os.ReadDir(dir))(t) {
		found[e.Name()] = read(t, dir, e.Name())
	}
	return found
}

// Two folders with the same sources make the same bytes.
func TestReleasesAreReproducible(t *testing.T) {
	one, two := contents(t, made(t).out), contents(t, expect.Get(built("a-second-folder"))(t).out)
	want := []string{"SHA256SUMS", "THIRD-PARTY-LICENSES", "install.sh"}
	for _, function := range functions {
		name := "longshore-" + function + "_v0.1.0_" + lambdaArch[here.arch]
		want = append(want, name+".cdx.json", name+".zip")
	}
	want = append(want, "longshore_0.1.0_"+here.arch+".deb", "longshore_v0.1.0_"+here.String()+".cdx.json",
		"longshore_v0.1.0_"+here.String()+".tar.gz", "longshore_v0.1.0_oci.tar", "longshore_v0.1.0_template.json")
	expect.Same(t, "the release", want, slices.Sorted(maps.Keys(one)))
	for _, name := range want {
		if !bytes.Equal(one[name], two[name]) {
			t.Errorf("%s differs between two folders", name)
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(one[name]), name); name != sums &&
			!strings.Contains(string(one[sums]), line) {
			t.Errorf("%s does not have the line %q", sums, line)
		}
	}
}

// TestPartsAreListed proves that THIRD-PARTY-LICENSES names every module that a list of parts names.
func TestPartsAreListed(t *testing.T) {
	r := made(t)
	third, lists := read(t, r.out, "THIRD-PARTY-LICENSES"), expect.Get(filepath.Glob(filepath.Join(r.out, "*.cdx.json")))(t)
	if len(lists) != 1+len(functions) {
		t.Fatalf("%q: want a list for each program", lists)
	}
	for _, name := range lists {
		var list struct {
			SerialNumber string
			Metadata     struct {
				Timestamp string
				Component struct{ Version string }
			}
			Components []struct{ Name, Version string }
		}
		expect.OK(t, json.Unmarshal(read(t, name), &list))
		expect.Same(t, name+": serial number, time and version", []string{"", "", version},
			[]string{list.SerialNumber, list.Metadata.Timestamp, list.Metadata.Component.Version})
		expect.Least(t, "modules that "+name+" lists", 10, len(list.Components))
		for _, c := range list.Components {
			if c.Name != "std" && !bytes.Contains(third, []byte("\n"+c.Name+" "+c.Version+"\n")) {
				t.Errorf("%s lists %s %s, of which there is no licence", name, c.Name, c.Version)
			}
		}
	}
}

func TestModulesWithoutLicenceAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		reason, file string
		refused      bool
	}{
		"Licence":   {"British authors, too", "LICENCE.md", false},
		"Above":     {"a package has its module's", "../LICENSE", false},
		"Notice":    {"a notice permits nothing", "NOTICE", true},
		"Code":      {"a Go file about licences is none", "license.go", true},
		"Unrelated": {"a page is none", "README.md", true},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "package")
			expect.OK(t, os.Mkdir(dir, 0o755))
			write(t, filepath.Join(dir, test.file), []byte("text"))
			texts := map[string]map[string]bool{}
			if err := collect(texts, "example.com/m v1.0.0", top, dir); (err != nil) != test.refused {
				t.Errorf("%s: %v", test.reason, err)
			}
		})
	}
}

// git runs git in a folder, as an author of its own.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	expect.OK(t, err, "git", args, string(out))
}

// A release is of a commit that has the version's tag, and of nothing else.
func TestSourcesAreChecked(t *testing.T) {
	dir := t.TempDir()
	refused := func(part string, args ...string) {
		t.Helper()
		err := run(t.Context(), append([]string{"-root", dir, "-out", filepath.Join(dir, "out")}, args...), os.Getenv)
		expect.Says(t, fmt.Sprintf("release %q", args), fmt.Sprint(err), part)
	}
	for _, wrong := range []string{"", "0.1.0", "v1", "v1.2", "v1.2.3+build", "latest"} {
		refused("semantic version with a leading v", "-version", wrong)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	refused("does not have the tag v0.1.0", "-version", version)
	git(t, dir, "tag", "v0.1.0-rc.1")
	refused("does not have the tag v0.1.0", "-version", version)
	git(t, dir, "tag", version)
	expect.OK(t, checkSources(t.Context(), dir, version))
	write(t, filepath.Join(dir, "more"), nil)
	refused("not committed", "-version", version)
	refused("KEY: ", "-version", version, "-draft", "-key", "none")
	refused("SOURCE_DATE_EPOCH", "-version", version, "-draft")
}

func TestTimeIsTheCommits(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	for epoch, want := range map[string]string{"": "2026-01-02T03:04:05Z", "86400": "1970-01-02T00:00:00Z"} {
		expect.Same(t, "with SOURCE_DATE_EPOCH="+epoch, want, expect.Get(timeOf(t.Context(), dir, epoch))(t).Format(time.RFC3339))
	}
}

// The command of docs/release.md verifies the checksums, and refuses changed ones.
func TestSumsAreSigned(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen")
	}
	dir := t.TempDir()
	key := filepath.Join(t.TempDir(), "key")
	expect.Get(output(t.Context(), dir, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key))(t)
	signers := filepath.Join(t.TempDir(), "signers")
	write(t, signers, append([]byte("release@longshore "), read(t, key+".pub")...))
	write(t, filepath.Join(dir, "file"), []byte("content"))
	expect.OK(t, writeSums(dir))
	expect.OK(t, sign(t.Context(), dir, key))
	_, command, _ := strings.Cut(string(read(t, "../docs/release.md")), "```sh\nssh-keygen -Y verify")
	command, _, _ = strings.Cut(command, "```")
	verify := func() error {
		return expect.Err(output(t.Context(), dir, nil, "bash", "-euc", "ssh-keygen -Y verify"+
			strings.ReplaceAll(command, "allowed_signers", signers)))
	}
	if err := verify(); err != nil || command == "" {
		t.Errorf("verifying by %q: %v", command, err)
	}
	write(t, filepath.Join(dir, sums), []byte("another"))
	if verify() == nil {
		t.Error("a changed list of checksums is verified")
	}
}

// The template needs nothing but the release's zips in a bucket: everything that it names is in it, and no asset of the CDK's is.
func TestTemplateTakesTheZips(t *testing.T) {
	r := made(t)
	raw := read(t, r.out, "longshore_v0.1.0_template.json")
	var all struct {
		Parameters map[string]any
		Resources  map[string]struct {
			Type       string
			Properties struct {
				Code struct{ S3Bucket, S3Key map[string]string }
			}
		}
	}
	expect.OK(t, json.Unmarshal(raw, &all))
	for _, ref := range regexp.MustCompile(`"Ref": "([A-Za-z0-9]+)"`).FindAllStringSubmatch(string(raw), -1) {
		if all.Parameters[ref[1]] == nil && all.Resources[ref[1]].Type == "" {
			t.Errorf("the template names %s, which it does not have", ref[1])
		}
	}
	taken := 0
	for id, is := range all.Resources {
		if is.Type != "AWS::Lambda::Function" {
			continue
		}
		taken++
		key := strings.NewReplacer("${CodePrefix}", "", "${Architecture}", lambdaArch[here.arch]).
			Replace(is.Properties.Code.S3Key["Fn::Sub"])
		if _, err := os.Stat(filepath.Join(r.out, key)); err != nil || is.Properties.Code.S3Bucket["Ref"] != "CodeBucket" {
			t.Errorf("%s takes %v of %v: %v", id, key, is.Properties.Code.S3Bucket, err)
		}
		packed := expect.Get(zip.OpenReader(filepath.Join(r.out, key)))(t)
		var names []string
		for _, f := range packed.File {
			names = append(names, f.Name)
		}
		_ = packed.Close()
		want := []string{"bootstrap", "catalog.dat"}
		if strings.HasPrefix(id, "Reaper") {
			want = want[:1]
		}
		expect.Same(t, "what "+key+" holds", want, names)
	}
	expect.Same(t, "so many functions has the template", len(functions), taken)
}
