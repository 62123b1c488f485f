package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/shell"
	"github.com/longshore/longshore/internal/front/platforms"
)

// first returns a registry with only the default platform, whose credential is the one in the
// settings or, if they have none, a generated password.
func first(s Settings) platforms.Registry {
	p := platforms.Platform{ID: platforms.Default, Name: platforms.Default,
		Credential: platforms.Credential{Username: "broker", Password: platforms.NewPassword()}}
	if s.Username != "" {
		p.Credential, p.Chosen = platforms.Credential{Username: s.Username, Password: s.Password}, true
	}
	return platforms.Registry{Platforms: []platforms.Platform{p}}
}

// shortPassword is the length below which a password may be guessed.
const shortPassword = 12

// platforms returns the platforms that may log in. The environment gives the first credential of a
// new folder. Later the folder alone decides, and the environment must name a login that the folder
// knows: otherwise the next start would undo a rotation, and a leaked password would stay valid. The
// machine's clock judges old passwords, since rotate states by that clock until when a password is valid.
func (b *Broker) platforms(s Settings) (*platforms.Kept, error) {
	logins := b.folder.Logins()
	r, begun, err := logins.Open(first(s))
	if err == nil && !begun {
		err = known(r, s, b.log)
	}
	if err != nil {
		return nil, err
	}
	if begun && s.Username != "" {
		b.log.Info("the data folder keeps the user name and the password that are set; "+
			"from now on it alone decides who may log in", "data", s.Data)
	}
	b.Default = r.Platforms[0]
	for _, p := range r.Platforms {
		if p.Removed.IsZero() && utf8.RuneCountInString(p.Password) < shortPassword {
			b.log.Warn(fmt.Sprintf("a password has fewer than %d characters, and may be guessed: "+
				"`longshore platform rotate %s --data %s` gives another", shortPassword, p.Name, shell.Word(s.Data)),
				"platform", p.Name)
		}
	}
	return platforms.NewKept(context.Background(), logins.Registry, app.Now, b.log)
}

// known refuses an environment that names a login that the folder does not know, or no longer knows.
func known(r platforms.Registry, s Settings, log *slog.Logger) error {
	if s.Username == "" {
		return nil
	}
	first, dir := r.Platforms[0], shell.Word(s.Data)
	mend := fmt.Sprintf("unset both %s and %s, as the folder keeps its own, or set them to what the platform logs in with now; "+
		"`longshore platform rotate %s --data %s` gives it a new password", app.EnvUsername, app.EnvPassword, first.Name, dir)
	until, known := first.Until(s.Username, s.Password)
	switch {
	case !first.Removed.IsZero():
		return advice.For(app.EnvUsername,
			fmt.Sprintf("is set, but platform %q was removed from data folder %q", first.Name, s.Data),
			fmt.Sprintf("unset both it and %s; `longshore platform add %s --data %s` lets the platform in again",
				app.EnvPassword, first.Name, dir))
	case s.Username != first.Username:
		what := fmt.Sprintf("is %q, but in data folder %q platform %q logs in as %q", s.Username, s.Data,
			first.Name, first.Username)
		return advice.For(app.EnvUsername, what, mend)
	case !known:
		return advice.For(app.EnvPassword,
			fmt.Sprintf("is not the password of platform %q in data folder %q", first.Name, s.Data), mend)
	case until.IsZero():
		return nil
	case !app.Now().Before(until):
		return advice.For(app.EnvPassword, fmt.Sprintf(
			"is the old password of platform %q in data folder %q, which ended at %s", first.Name, s.Data,
			until.Format(time.RFC3339)), mend)
	}
	log.Warn(app.EnvPassword+" is the old password, which a rotation has replaced: set the new one, or unset it and "+
		app.EnvUsername, "valid_until", until)
	return nil
}
