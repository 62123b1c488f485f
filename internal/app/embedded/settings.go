package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/advice"
)

// Settings are the settings with which the embedded broker starts.
type Settings struct {
	// Listen is the address to listen on, as HOST:PORT.
	Listen string
	// Origin is the address at which browsers reach the broker, such as
	// https://broker.example.com; empty for the address that the broker listens on.
	Origin string
	// Data is the folder with everything that the broker keeps.
	Data string
	// Username and Password are the platform's credentials. If both are empty, the broker generates and keeps them.
	Username, Password string
	// Offerings is the folder of the operator's own offerings; empty for none.
	Offerings string
	// Flags are the values of the given flags for providers, by the variables before which they stand. They may hold passwords.
	Flags map[string]string
	// Getenv returns the providers' own settings; nil for none.
	Getenv func(string) string
	// RetryAfter bounds the Retry-After of answers.
	RetryAfter app.RetryAfter
	// PlatformRate is how many requests a second each platform may send; zero for no limit.
	PlatformRate int
	// ReaperDryRun makes the reaper only report the things that no record knows.
	ReaperDryRun bool
	// wall is the machine's clock; nil for the real one.
	wall func() time.Time
}

// Complete adds the environment to the settings of the command line, and checks all of them.
func (s Settings) Complete(getenv func(string) string) (Settings, error) {
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		return s, advice.For("--listen", fmt.Sprintf("%q is not HOST:PORT", s.Listen), "give one such as 127.0.0.1:8080")
	}
	if s.Data == "" {
		return s, advice.For("--data", "is empty", "name the folder in which the broker keeps its records")
	}
	// Paths are added to it, and developers see it.
	if u, err := url.Parse(s.Origin); s.Origin != "" && (err != nil || u.Host == "" || u.User != nil ||
		strings.ContainsAny(s.Origin, "?#") || u.Scheme != "http" && u.Scheme != "https") {
		return s, advice.For("--origin", fmt.Sprintf("%q is not an address that a browser can open", s.Origin),
			"give scheme and host, such as https://broker.example.com")
	}
	s.Username, s.Password = getenv(app.EnvUsername), getenv(app.EnvPassword)
	switch {
	case s.Username == "" && s.Password != "":
		return s, advice.For(app.EnvUsername, "is not set although "+app.EnvPassword+" is", "set both, or neither")
	case s.Username != "" && s.Password == "":
		return s, advice.For(app.EnvPassword, "is not set although "+app.EnvUsername+" is", "set both, or neither")
	case strings.Contains(s.Username, ":"): // RFC 7617: the first colon ends the user name
		return s, advice.For(app.EnvUsername, "has a colon", "choose a user name without one")
	}
	var retryErr, dryErr, rateErr error
	s.Getenv = WithFlags(s.Flags, getenv)
	s.RetryAfter, retryErr = app.ReadRetryAfter(getenv)
	s.ReaperDryRun, dryErr = app.Flag(getenv, app.EnvReaperDryRun)
	s.PlatformRate, rateErr = app.PlatformRate(getenv)
	return s, errors.Join(checkSettings(s.Getenv), retryErr, dryErr, rateErr)
}
