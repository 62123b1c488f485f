package main

import (
	"crypto/md5"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed longshore.service
var unit []byte

//go:embed longshore.sysusers
var sysusers []byte

//go:embed longshore.default
var defaults []byte

//go:embed postinst
var postinst []byte

//go:embed prerm
var prerm []byte

// deb writes the Debian package of a program.
func (r *release) deb(p program, beside papers) error {
	files := []file{
		{name: "usr/bin/longshore", mode: 0o755, content: p.content},
		{name: "usr/lib/systemd/system/longshore.service", mode: 0o644, content: unit},
		{name: "usr/lib/sysusers.d/longshore.conf", mode: 0o644, content: sysusers},
		// The file may contain passwords.
		{name: "etc/default/longshore", mode: 0o600, content: defaults},
		{name: "usr/share/doc/longshore/README.md", mode: 0o644, content: beside.readme},
		{name: "usr/share/doc/longshore/copyright", mode: 0o644, content: slices.Concat(beside.licence, beside.third)},
	}
	control, err := tarGz(r.control(p.arch, files), r.time)
	if err != nil {
		return err
	}
	data, err := tarGz(withFolders(files), r.time)
	if err != nil {
		return err
	}
	archive := ar([]file{
		{name: "debian-binary", content: []byte("2.0\n")},
		{name: "control.tar.gz", content: control},
		{name: "data.tar.gz", content: data},
	}, r.time)
	name := fmt.Sprintf("longshore_%s_%s.deb", debianVersion(r.version), p.arch)
	return r.write(name, archive, nil)
}

// debianVersion converts a version so that Debian sorts it in the same way: to Debian, a tilde
// comes before everything.
func debianVersion(version string) string {
	return strings.Replace(strings.TrimPrefix(version, "v"), "-", "~", 1)
}

// control returns the files that describe the package to dpkg.
func (r *release) control(arch string, files []file) []file {
	size := 0
	var sums strings.Builder
	for _, f := range files {
		size += (len(f.content) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.content), f.name)
	}
	control := fmt.Sprintf(`Package: longshore
Version: %s
Architecture: %s
Maintainer: The Longshore authors <https://github.com/longshore/longshore>
Installed-Size: %d
Depends: systemd
Recommends: ca-certificates
Section: net
Priority: optional
Homepage: https://github.com/longshore/longshore
Description: service broker for databases and AWS services
 Longshore speaks the Open Service Broker API: a platform such as Cloud Foundry
 registers its URL, and its developers order databases and AWS services with
 credentials by one command. This is the broker for one machine, as a service.
`, debianVersion(r.version), arch, size)
	return []file{
		{name: "./control", mode: 0o644, content: []byte(control)},
		{name: "./md5sums", mode: 0o644, content: []byte(sums.String())},
		{name: "./conffiles", mode: 0o644, content: []byte("/etc/default/longshore\n")},
		{name: "./postinst", mode: 0o755, content: postinst},
		{name: "./prerm", mode: 0o755, content: prerm},
	}
}

// withFolders adds the folders of the files, since dpkg removes only folders that it has unpacked.
func withFolders(files []file) []file {
	seen, all := map[string]bool{}, []file{{name: "./", mode: 0o755}}
	for _, f := range files {
		f.name = "./" + f.name
		all = append(all, f)
		for dir := path.Dir(f.name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, file{name: "./" + dir + "/", mode: 0o755})
		}
	}
	return all
}
