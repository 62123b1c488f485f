package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sums is the file of checksums, with which sha256sum --check verifies everything else.
const sums = "SHA256SUMS"

// namespace is the purpose of the signature, in the terms of ssh-keygen: a signature that the same
// key made for another purpose does not count for a release.
const namespace = "longshore-release"

func writeSums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sums), []byte(b.String()), 0o644)
}

// sign writes an SSH signature of the checksums beside them; it does nothing without a key.
func sign(ctx context.Context, dir, key string) error {
	if key == "" {
		return nil
	}
	_, err := output(ctx, dir, nil, "ssh-keygen", "-Y", "sign", "-q", "-f", key, "-n", namespace, sums)
	return err
}
