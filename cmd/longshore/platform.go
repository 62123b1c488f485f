package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/platforms"
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// defaultOverlap leaves an operator a day to tell the platform.
const defaultOverlap = 24 * time.Hour

// platform manages who may use a broker, embedded or deployed.
func platform(ctx context.Context, args []string, out, diagnostics io.Writer) error {
	if len(args) == 0 {
		return &usageError{"say what to do with platforms: add, list, rotate or remove"}
	}
	var (
		flags            = flag.NewFlagSet("platform", flag.ContinueOnError)
		data, stack      string
		path, dir        string
		visible          list
		overlap          time.Duration
		now              bool
		verb, name, rest = args[0], "", args[1:]
	)
	flags.SetOutput(io.Discard)
	flags.StringVar(&data, "data", ".longshore", "")
	flags.StringVar(&stack, "stack", "", "")
	switch verb {
	case "list":
	case "add":
		flags.StringVar(&path, "path", "", "")
		flags.Var(&visible, "offering", "")
		flags.StringVar(&dir, "offerings", "", "")
	case "rotate":
		flags.DurationVar(&overlap, "overlap", defaultOverlap, "")
		flags.BoolVar(&now, "now", false, "")
	case "remove":
	default:
		return &usageError{fmt.Sprintf("platforms know no %q: add, list, rotate or remove", verb)}
	}
	if verb != "list" {
		if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
			return &usageError{"platform " + verb + " needs a name first"}
		}
		name, rest = rest[0], rest[1:]
	}
	switch err := flags.Parse(rest); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return &usageError{err.Error()}
	}
	if flags.NArg() > 0 {
		return &usageError{fmt.Sprintf("platform %s does not take %q", verb, flags.Arg(0))}
	}
	registrar, err := registrarOf(ctx, data, stack)
	if err != nil {
		return err
	}
	switch verb {
	case "list":
		return listPlatforms(ctx, registrar, out)
	case "add":
		if err := checkOfferings(dir, visible); err != nil {
			return err
		}
		return addPlatform(ctx, registrar, platforms.Platform{Name: name, Path: path, Offerings: visible}, out)
	case "rotate":
		if overlap < 0 {
			return &usageError{"--overlap is negative"}
		}
		return rotatePlatform(ctx, registrar, name, overlap, now, out, diagnostics)
	default:
		return removePlatform(ctx, registrar, name, out)
	}
}

func registrarOf(ctx context.Context, data, stack string) (app.Registrar, error) {
	if stack != "" {
		return app.StackRegistrar(ctx, stack)
	}
	return app.FolderRegistrar(data)
}

// checkOfferings refuses names that are of nothing. Offerings of one's own are
// known by their folder.
func checkOfferings(dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	offered, err := app.LoadCatalog(dir)
	if err != nil {
		return err
	}
	_, err = catalog.NewView(offered.Offerings(), names)
	return err
}

func listPlatforms(ctx context.Context, registrar app.Registrar, out io.Writer) error {
	r, err := registrar.Registry(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tID\tUSER\tPATH\tSEES\tPASSWORDS")
	for _, p := range r.Platforms {
		sees, passwords := "everything", "1"
		if len(p.Offerings) > 0 {
			sees = strings.Join(p.Offerings, ", ")
		}
		for _, old := range p.Previous {
			if time.Now().Before(old.Until) {
				passwords += ", an older one until " + old.Until.Format(time.RFC3339)
			}
		}
		if !p.Removed.IsZero() {
			passwords = "none: removed " + p.Removed.Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.ID, p.Username, orDash(p.Path), sees, passwords)
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func addPlatform(ctx context.Context, registrar app.Registrar, p platforms.Platform, out io.Writer) error {
	p.ID = "p-" + strings.ToLower(rand.Text()[:12])
	p.Credential = platforms.Credential{Username: p.Name, Password: app.NewPassword()}
	err := registrar.Change(ctx, func(r platforms.Registry) (platforms.Registry, error) { return r.Add(p, time.Now()) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `Platform %[1]s may use the broker, in a minute at the latest.

  URL       the broker's own%[2]s
  user      %[3]s
  password  %[4]s

The password is shown this once.
`, p.Name, followedBy(p.Path), p.Username, p.Password)
	return err
}

func followedBy(path string) string {
	if path == "" {
		return ""
	}
	return ", followed by " + path
}

// rotatePlatform waits until every process knows of the new password before it
// shows it: whoever uses it then is never refused.
func rotatePlatform(ctx context.Context, registrar app.Registrar, name string, overlap time.Duration, now bool, out, diagnostics io.Writer) error {
	password := app.NewPassword()
	err := registrar.Change(ctx, func(r platforms.Registry) (platforms.Registry, error) {
		return r.Rotate(name, password, time.Now(), overlap)
	})
	if err != nil {
		return err
	}
	if !now {
		if err := countDown(ctx, platforms.Spread, "until every part of the broker knows the new password", diagnostics); err != nil {
			_, _ = fmt.Fprintln(diagnostics, "not waited for: it may be refused in the next minute")
		}
	}
	old := "The old password is valid no more."
	if overlap > 0 {
		old = fmt.Sprintf("The old password is valid for %v more: tell the platform before that (cf update-service-broker).", short(overlap))
	}
	_, err = fmt.Fprintf(out, "The new password of platform %s: %s\n%s\n", name, password, old)
	return err
}

// short is a duration without the parts of it that are zero.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// countDown waits, and says how long it will.
func countDown(ctx context.Context, wait time.Duration, what string, diagnostics io.Writer) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for left := wait; left > 0; left -= time.Second {
		if left == wait || left%(15*time.Second) == 0 {
			_, _ = fmt.Fprintf(diagnostics, "%v %s\n", left, what)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func removePlatform(ctx context.Context, registrar app.Registrar, name string, out io.Writer) error {
	err := registrar.Change(ctx, func(r platforms.Registry) (platforms.Registry, error) {
		live := 0
		for _, p := range r.Platforms {
			if p.Removed.IsZero() {
				live++
			}
		}
		if live == 1 && len(r.Platforms) > 0 {
			next, err := r.Remove(name, time.Now())
			if err == nil {
				err = errors.New("it is the last platform: nobody could use the broker; add another one first")
			}
			return next, err
		}
		return r.Remove(name, time.Now())
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Platform %s is refused, in a minute at the latest. What it made stays; `longshore platform add %s` gives it back access to that.\n", name, name)
	return err
}
