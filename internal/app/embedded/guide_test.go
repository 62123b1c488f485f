package embedded

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// blocks are the guide's blocks of a language, in their order.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	guide := expect.Get(os.ReadFile("../../../docs/postgres.md"))(t)
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(guide), -1) {
		found = append(found, m[1])
	}
	if found == nil {
		t.Fatalf("the guide has no block in %s", language)
	}
	return found
}

// guided is a login that the guide's statements have made on a server, and nothing
// else. Each server of the test has its own, since they name it.
func guided(t *testing.T, s *pgtest.Server) hosted.Access {
	t.Helper()
	a := hosted.Access{Host: s.Host(), Port: s.Port(), User: "longshore", Password: "a password of the broker's login",
		Database: "longshore", TLS: hosted.TLSDisable}
	verifier, all := expect.Get(scram.Verifier(a.Password))(t), blocks(t, "sql")
	// psql asks for the password, and sends this.
	statements := strings.ReplaceAll(all[0], `\password longshore`, "ALTER ROLE longshore PASSWORD '"+verifier+"';")
	for statement := range strings.SplitSeq(statements, ";") {
		if strings.TrimSpace(statement) != "" {
			s.Exec("", statement)
		}
	}
	for _, looks := range all[1:] {
		s.Exec("", looks)
	}
	rows := expect.Get(s.Connect("").Query(t.Context(), all[1]))(t)
	if open := expect.Get(pgx.CollectRows(rows, pgx.RowTo[string]))(t); len(open) > 0 {
		t.Errorf("after the guide's statements everybody may still enter %q", open)
	}
	return a
}

// A login that the guide's statements have made is all that the broker needs, on each version.
func TestGuide(t *testing.T) {
	t.Parallel()
	for _, version := range pgtest.Versions {
		if version == "17" {
			continue // on which TestPostgresByURL does all this, and more
		}
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := pgtest.New(t, version)
			access := guided(t, server)
			h := newHistory(t)
			h.start(map[string]string{"LONGSHORE_POSTGRES_URL": urlOf(access)})
			service, plan := h.plan("postgres", "small")
			h.provision("i", service, plan)
			h.bind("i/service_bindings/b", service, plan)
			h.remove("i/service_bindings/b", service, plan)
			h.remove("i", service, plan)
			nothingIsLeft(t, server, access)
		})
	}
}

// clients is where `make clients` puts drivers.
const clients = "../../../.tools/clients-2"

// examples runs the guide's examples with a binding's credentials.
func examples(t *testing.T, credentials map[string]any) {
	uri, _ := credentials["uri"].(string)
	jdbc, _ := credentials["jdbcUrl"].(string)
	installed := expect.Get(filepath.Abs(clients))(t)
	expect.Get(os.Stat(filepath.Join(installed, "installed")))(t, "the drivers of the guide's examples: run make clients:")
	for language, run := range map[string]struct {
		says, file string
		command    []string
	}{
		"go": {"go", "example.go", []string{"go", "run"}}, "js": {"node", "example.js", []string{"node"}},
		"python": {"python", "example.py", []string{filepath.Join(installed, "python", "bin", "python3")}},
		"java": {"java", "Example.java", []string{
			"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(installed, "postgresql.jar")}},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), run.file)
			expect.OK(t, os.WriteFile(file, []byte(blocks(t, language)[0]), 0o600))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, run.command[0], append(run.command[1:], file)...)
			c.Env = append(os.Environ(), "DATABASE_URL="+uri, "JDBC_URL="+jdbc,
				"NODE_PATH="+filepath.Join(installed, "node_modules"))
			out, err := c.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "hello "+run.says {
				t.Errorf("the example has ended with %v:\n%s", err, out)
			}
		})
	}
}
