package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offered"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
)

const (
	// defaultOverlap leaves an operator a day to tell the platform.
	defaultOverlap = 24 * time.Hour
	// minOverlap is longer than it takes until every process of the broker knows of a
	// rotation. A shorter overlap would have ended before the new password is shown.
	minOverlap = 2 * time.Minute
)

// newPlatform makes the commands that manage who may use a broker, embedded or
// deployed.
func newPlatform() *cobra.Command {
	platform := &cobra.Command{
		Use: "platform", Short: "Manage who may use the broker",
		Long: `Manage who may use the broker: the one over a data folder (--data DIR), or the
one that a stack on AWS is (--stack NAME). A running broker takes up changes
within a minute.`,
	}
	platform.AddCommand(newPlatformAdd(), newPlatformList(), newPlatformRotate(), newPlatformRemove())
	return platform
}

// flagsOfPlatforms says where the broker is, and gives its registrar.
func flagsOfPlatforms(c *cobra.Command) func() (app.Registrar, error) {
	data := c.Flags().String("data", dataFolder, "data `DIR` of the broker, which may run or not")
	stack := c.Flags().String("stack", "", "`NAME` of the stack that the broker is on AWS, in place of --data")
	c.PreRunE = oneBroker
	folders(c, "data")
	return func() (app.Registrar, error) { return registrarOf(c.Context(), *data, *stack) }
}

func newPlatformList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "Say who may use the broker, and what each sees", Args: takes(0, 0, "")}
	open := flagsOfPlatforms(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		registrar, err := open()
		if err != nil {
			return err
		}
		return listPlatforms(c.Context(), registrar, c.OutOrStdout())
	}
	return c
}

func newPlatformAdd() *cobra.Command {
	var (
		p   platforms.Platform
		dir string
	)
	c := &cobra.Command{
		Use: "add NAME", Short: "Let another platform use the broker, with a password of its own",
		Args: takes(1, 1, "a NAME for the platform, such as korifi"),
		Long: `Let another platform use the broker, with a user name and a password of its
own. The password is shown once. One that was removed comes back under its name,
with what it made, its path and what it may see, unless those are given: --path ""
is none, and --offering "" everything.

Where the record of the platforms themselves was lost (the secret of a stack, or
credentials.json of a folder), --id gives a platform back what it had made: the
operator's commands, such as instances, name it for each record.`,
		Example: "  longshore platform add korifi --path /korifi --offering cache/small\n" +
			"  longshore platform add korifi --id p-abcdefghijkl --stack Longshore",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	open := flagsOfPlatforms(c)
	c.Flags().StringVar(&p.ID, "id", "", "`ID` that it had before, under which its records are; a new one unless given")
	c.Flags().StringVar(&p.Path, "path", "", "`/PATH` that stands before /v2 in the platform's URL")
	c.Flags().StringArrayVar(&p.Offerings, "offering", nil, "`NAME[/PLAN]` that it may see, given once for each; everything unless given")
	c.Flags().StringVar(&dir, "offerings", "", "`DIR` of the broker's own offerings, which --offering may name")
	folders(c, "offerings")
	c.RunE = func(c *cobra.Command, args []string) error {
		p.Name = args[0]
		registrar, err := open()
		if err != nil {
			return err
		}
		if slices.Equal(p.Offerings, []string{""}) {
			p.Offerings = nil
		}
		if err := checkOfferings(dir, p.Offerings); err != nil {
			return err
		}
		return addPlatform(c.Context(), registrar, p, c.Flags().Changed("path"), c.Flags().Changed("offering"), c.OutOrStdout())
	}
	return c
}

const aName = "a name first: `longshore platform list` names all"

func newPlatformRotate() *cobra.Command {
	var (
		overlap time.Duration
		now     bool
	)
	c := &cobra.Command{
		Use: "rotate NAME", Short: "Give a platform a new password", Args: takes(1, 1, aName),
		Long: `Give a platform a new password. It is shown once every process of the broker
knows it, after about a minute; the old one stays valid until the overlap ends,
at a time that is printed.

A broker over a folder that is started with LONGSHORE_PASSWORD needs the new one
there: until the overlap ends it also starts with the old one, and warns; after
that it does not.`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	open := flagsOfPlatforms(c)
	c.Flags().DurationVar(&overlap, "overlap", defaultOverlap,
		"`DURATION` for which the old password stays valid, 2m or more; 0s ends it at once")
	c.Flags().BoolVar(&now, "now", false, "do not wait: show the new password at once")
	c.RunE = func(c *cobra.Command, args []string) error {
		if overlap != 0 && overlap < minOverlap {
			return &usageError{fmt.Sprintf("--overlap %v is shorter than it takes until every part of the broker knows the new password: "+
				"give %s or more, or 0s to end the old one at once", overlap, short(minOverlap))}
		}
		registrar, err := open()
		if err != nil {
			return err
		}
		return rotatePlatform(c.Context(), registrar, args[0], overlap, now, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

func newPlatformRemove() *cobra.Command {
	c := &cobra.Command{
		Use: "remove NAME", Short: "Take a platform's access away; what it made stays", Args: takes(1, 1, aName),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	open := flagsOfPlatforms(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		registrar, err := open()
		if err != nil {
			return err
		}
		return removePlatform(c.Context(), registrar, args[0], c.OutOrStdout())
	}
	return c
}

func registrarOf(ctx context.Context, data, stack string) (app.Registrar, error) {
	if stack != "" {
		return app.StackRegistrar(ctx, stack)
	}
	return app.FolderRegistrar(data)
}

// checkOfferings refuses names that no offering has; dir holds the operator's own
// offerings.
func checkOfferings(dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	all, err := offered.Load(dir)
	if err != nil {
		return err
	}
	_, err = catalog.NewView(all.Offerings(), names)
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
		sees, passwords, user := "everything", "1", p.Username
		if len(p.Offerings) > 0 {
			sees = strings.Join(p.Offerings, ", ")
		}
		for _, old := range p.Previous {
			if time.Now().Before(old.Until) {
				passwords += ", an older one until " + old.Until.Format(time.RFC3339)
			}
		}
		if !p.Removed.IsZero() {
			passwords, user = "none: removed "+p.Removed.Format(time.RFC3339), "-"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.ID, user, orDash(p.Path), sees, passwords)
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// addPlatform adds a platform; path and offerings say whether those were given.
func addPlatform(ctx context.Context, registrar app.Registrar, p platforms.Platform, path, offerings bool, out io.Writer) error {
	newID := "p-" + strings.ToLower(rand.Text()[:12])
	p.Credential = platforms.Credential{Username: p.Name, Password: app.NewPassword()}
	err := registrar.Change(ctx, func(r platforms.Registry) (platforms.Registry, error) {
		p = r.TakenBack(p, path, offerings)
		return r.Add(p, newID, time.Now())
	})
	if err != nil {
		return err
	}
	sees := "everything"
	if len(p.Offerings) > 0 {
		sees = strings.Join(p.Offerings, ", ")
	}
	_, err = fmt.Fprintf(out, `Platform %[1]s may use the broker, in a minute at the latest.

  URL       the broker's own%[2]s
  user      %[3]s
  password  %[4]s
  sees      %[5]s

The password is shown this once.
`, p.Name, followedBy(p.Path), p.Username, p.Password, sees)
	return err
}

func followedBy(path string) string {
	if path == "" {
		return ""
	}
	return ", followed by " + path
}

// rotatePlatform shows the new password only when every process knows it: whoever uses
// it then is never refused.
func rotatePlatform(ctx context.Context, registrar app.Registrar, name string, overlap time.Duration, now bool, out,
	diagnostics io.Writer) error {
	password := app.NewPassword()
	var until time.Time
	err := registrar.Change(ctx, func(r platforms.Registry) (platforms.Registry, error) {
		at := time.Now()
		until = platforms.EndOfOverlap(at, overlap)
		return r.Rotate(name, password, at, overlap)
	})
	if err != nil {
		return err
	}
	known := !now
	if known {
		if err := countDown(ctx, platforms.Spread, "until every part of the broker knows the new password", diagnostics); err != nil {
			_, _ = fmt.Fprintln(diagnostics, "not waited for: it may be refused in the next minute")
			known = false
		}
	}
	old := "The old password is refused."
	switch {
	case overlap > 0:
		old = fmt.Sprintf("The old password is valid until %s: tell the platform before that (cf update-service-broker).",
			until.Format(time.RFC3339))
	case !known:
		old = "The old password is refused, in a minute at the latest."
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
	_, err = fmt.Fprintf(out,
		"Platform %s is refused, in a minute at the latest. What it made stays; `longshore platform add %s` gives it back access to that.\n",
		name, name)
	return err
}
