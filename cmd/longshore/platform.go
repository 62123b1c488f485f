package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app/console"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/operator/folder"
)

const (
	// defaultOverlap leaves an operator a day to give the platform its new password.
	defaultOverlap = 24 * time.Hour
	// minOverlap is longer than it takes until every process of the broker knows of a rotation. A
	// shorter overlap would end before the new password is shown.
	minOverlap = 2 * time.Minute
)

// newPlatform makes the commands that manage who may use a broker, embedded or deployed.
func newPlatform() *cobra.Command {
	platform := &cobra.Command{
		Use: "platform", Short: "Manage who may use the broker",
		Long: `Manage who may use the broker over a data folder (--data DIR) or on AWS
(--stack NAME). A running broker applies changes within a minute.`,
	}
	platform.AddCommand(newPlatformAdd(), newPlatformList(), newPlatformRotate(), newPlatformRemove(),
		newPlatformSignOn(), newPlatformOIDC())
	return platform
}

// manages makes a command work on the registrar of the broker that its flags name; run gets its
// argument as name, which is empty for none. Unless the command completes it, it names a platform.
func manages(c *cobra.Command, run func(c *cobra.Command, r platforms.Registrar, name string) error) *cobra.Command {
	var p whichBroker
	p.whereabouts(c)
	if c.Args != nil && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = onlyFirst(platformNames)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		registrar, err := folder.LoginsOf(p.data)
		if p.stack != "" {
			registrar, err = console.Registrar(c.Context(), p.stack)
		}
		if err != nil {
			return err
		}
		return run(c, registrar, strings.Join(args, ""))
	}
	return c
}

func newPlatformList() *cobra.Command {
	var v view
	c := &cobra.Command{Use: "list", Short: "List who may use the broker, and what each sees"}
	listedPlatforms.flags(c, &v)
	return manages(c, func(c *cobra.Command, registrar platforms.Registrar, _ string) error {
		r, err := registrar.Registry(c.Context())
		if err != nil {
			return err
		}
		var all []listedPlatform
		for _, p := range r.Platforms {
			all = append(all, listed(p))
		}
		listedPlatforms.sort(all, v.order)
		listedPlatforms.print(c.OutOrStdout(), v, all)
		return nil
	})
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
own. The password is shown once. A removed platform comes back under its name, with
what it made, its path and what it may see, unless you give new ones: --path "" means
none, and --offering "" everything.

If the record of the platforms themselves was lost (the secret of a stack, or
credentials.json of a folder), --id gives a platform back what it had made: the
operator's commands, such as instances, show the id with each record.`,
		Example: "  longshore platform add korifi --path /korifi --offering cache/small\n" +
			"  longshore platform add korifi --id p-abcdefghijkl --stack Longshore",
	}
	c.Flags().StringVar(&p.ID, "id", "", "`ID` that it had before, which its records carry; a new one unless given")
	c.Flags().StringVar(&p.Path, "path", "", "`/PATH` that stands before /v2 in the platform's URL")
	c.Flags().StringArrayVar(&p.Offerings, "offering", nil,
		"`NAME[/PLAN]` that it may see; repeat the flag for each; everything unless given")
	c.Flags().StringVar(&dir, "offerings", "", "`DIR` of the broker's own offerings, which --offering may name")
	return manages(c, func(c *cobra.Command, registrar platforms.Registrar, name string) error {
		p.Name = name
		if slices.Equal(p.Offerings, []string{""}) {
			p.Offerings = nil
		}
		if len(p.Offerings) > 0 { // names that no offering has are refused
			all, err := offeringfiles.Load(dir)
			if err == nil {
				_, err = catalog.NewView(all.Offerings(), p.Offerings)
			}
			if err != nil {
				return err
			}
		}
		return addPlatform(c, registrar, p)
	})
}

const aName = "the NAME of a platform: `longshore platform list` lists them"

func newPlatformRotate() *cobra.Command {
	var (
		overlap time.Duration
		now     bool
	)
	c := &cobra.Command{
		Use: "rotate NAME", Short: "Give a platform a new password", Args: takes(1, 1, aName),
		Long: `Give a platform a new password. It is shown once every process of the broker
knows it, after about a minute; the old one stays valid until the overlap ends,
at a time that is printed. If a password has leaked, --overlap 0s ends every
earlier one at once.

A broker over a folder that is started with LONGSHORE_PASSWORD needs the new one
there: until the overlap ends it also starts with the old one, and warns; after
that it does not.`,
	}
	c.Flags().DurationVar(&overlap, "overlap", defaultOverlap,
		"`DURATION` for which the old password stays valid, 2m or more; 0s ends every earlier one at once")
	c.Flags().BoolVar(&now, "now", false, "do not wait: show the new password at once")
	return manages(c, func(c *cobra.Command, registrar platforms.Registrar, name string) error {
		if overlap != 0 && overlap < minOverlap {
			return misused("--overlap %v ends before every part of the broker knows the new password: give %gm or more, or "+
				"0s to end every earlier one at once", overlap, minOverlap.Minutes())
		}
		return rotatePlatform(c, registrar, name, overlap, now)
	})
}

func newPlatformRemove() *cobra.Command {
	return manages(&cobra.Command{
		Use: "remove NAME", Short: "Take a platform's access away; what it made stays", Args: takes(1, 1, aName),
	}, removePlatform)
}

// A listedPlatform is a platform as a list shows it, without a password.
type listedPlatform struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	User string `json:"user,omitempty"`
	Path string `json:"path,omitempty"`
	Sees string `json:"sees"`
	// OlderUntil is when the last of its replaced passwords expires, if there is one that is still valid.
	OlderUntil time.Time `json:"older_until,omitzero"`
	Removed    time.Time `json:"removed,omitzero"`
}

// listedPlatforms is the table of the platforms, in the order in which they were added.
var listedPlatforms = table[listedPlatform]{
	columns: "name id user path sees older_until removed",
	of: func(p listedPlatform, column string) any {
		return map[string]any{"name": p.Name, "id": p.ID, "user": p.User, "path": p.Path, "sees": p.Sees,
			"older_until": p.OlderUntil, "removed": p.Removed}[column]
	},
}

// listed returns a platform as a list shows it.
func listed(p platforms.Platform) listedPlatform {
	l := listedPlatform{Name: p.Name, ID: p.ID, User: p.Username, Path: p.Path, Sees: seenBy(p), Removed: p.Removed}
	for _, old := range p.Previous {
		if time.Now().Before(old.Until) && old.Until.After(l.OlderUntil) {
			l.OlderUntil = old.Until
		}
	}
	if !p.Removed.IsZero() {
		l.User = ""
	}
	return l
}

// seenBy describes what a platform may see.
func seenBy(p platforms.Platform) string {
	return cmp.Or(strings.Join(p.Offerings, ", "), "everything")
}

func addPlatform(c *cobra.Command, registrar platforms.Registrar, p platforms.Platform) error {
	p.Credential = platforms.Credential{Username: p.Name, Password: platforms.NewPassword()}
	err := registrar.Change(c.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		p = r.TakenBack(p, c.Flags().Changed("path"), c.Flags().Changed("offering"))
		return r.Add(p, platforms.NewID(), time.Now())
	})
	if err != nil {
		return err
	}
	url := "the broker's own"
	if p.Path != "" {
		url += ", followed by " + p.Path
	}
	printf(c.OutOrStdout(), `Platform %[1]s may use the broker, in a minute at the latest.

  URL       %[2]s
  user      %[3]s
  password  %[4]s
  sees      %[5]s

The password is shown this once.
`, p.Name, url, p.Username, p.Password, seenBy(p))
	return nil
}

// rotatePlatform shows the new password only once every process knows it: a platform that uses the
// password then is never refused.
func rotatePlatform(c *cobra.Command, registrar platforms.Registrar, name string, overlap time.Duration, now bool) error {
	password := platforms.NewPassword()
	var until time.Time
	err := registrar.Change(c.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		at := time.Now()
		until = platforms.EndOfOverlap(at, overlap)
		return r.Rotate(name, password, at, overlap)
	})
	if err != nil {
		return err
	}
	const every = 15 * time.Second
	for left := platforms.Spread; left > 0 && !now; {
		printf(c.ErrOrStderr(), "%v until every part of the broker knows the new password\n", left)
		pause := cmp.Or(left%every, every)
		left -= pause
		if waiting.For(c.Context(), pause) != nil {
			printf(c.ErrOrStderr(), "not waited for: the broker may refuse it during the next minute\n")
			now = true
		}
	}
	old := "Every earlier password is refused."
	switch {
	case overlap > 0:
		old = fmt.Sprintf("The old password is valid until %s: tell the platform before that (cf update-service-broker).",
			until.Format(time.RFC3339))
	case now:
		old = "Every earlier password is refused, in a minute at the latest."
	}
	printf(c.OutOrStdout(), "The new password of platform %s: %s\n%s\n", name, password, old)
	return nil
}

func removePlatform(c *cobra.Command, registrar platforms.Registrar, name string) error {
	return changed(c, registrar, func(r platforms.Registry) (platforms.Registry, error) {
		next, err := r.Remove(name, time.Now())
		if err == nil && !slices.ContainsFunc(next.Platforms, func(p platforms.Platform) bool { return p.Removed.IsZero() }) {
			err = errors.New("it is the last platform: nobody could use the broker; add another one first")
		}
		return next, err
	}, fmt.Sprintf("Platform %s is refused, in a minute at the latest. What it made stays; `longshore platform add %[1]s` "+
		"gives it back access to that.", name))
}

// changed changes the registry, and says what is so from now on.
func changed(
	c *cobra.Command, registrar platforms.Registrar, change func(platforms.Registry) (platforms.Registry, error), said string,
) error {
	err := registrar.Change(c.Context(), change)
	if err == nil {
		printf(c.OutOrStdout(), "%s\n", said)
	}
	return err
}
