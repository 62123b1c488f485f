package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/front/platforms"
)

func newPlatformSignOn() *cobra.Command {
	var (
		s      platforms.SignOn
		secret string
		off    bool
	)
	c := &cobra.Command{
		Use: "signon NAME", Short: "Let people of a Cloud Foundry sign on to see their instances", Args: takes(1, 1, aName),
		Long: `Let people of a Cloud Foundry sign on by its login to see the pages of their
instances. Give the hosts of its API, its login and its UAA; the broker asks no other
host. At the next cf update-service-broker, the platform makes a client in the UAA for
each offering, as the catalog then says. If the platform may not, make a client by
hand, and give it with --client and --secret-file.`,
		Example: "  longshore platform signon cf-eu --host api.cf.example.com --host login.cf.example.com \\\n" +
			"    --host uaa.cf.example.com --stack Longshore",
	}
	c.Flags().StringArrayVar(&s.Hosts, "host", nil, "`HOST` that may be asked, given once for each")
	c.Flags().StringVar(&s.Client, "client", "", "`ID` of a client that was made by hand; the catalog then makes none")
	c.Flags().StringVar(&secret, "secret-file", "", "`FILE` with the client's secret, - for the standard input")
	c.Flags().BoolVar(&off, "off", false, "switch it off")
	return manages(c, func(c *cobra.Command, registrar platforms.Registrar, name string) (err error) {
		become := func(s *platforms.SignOn, said string) error {
			return changed(c, registrar, func(r platforms.Registry) (platforms.Registry, error) { return r.WithSignOn(name, s) },
				said+", in a minute at the latest.")
		}
		if off {
			return become(nil, "Nobody signs on by the login of platform "+name)
		}
		if len(s.Hosts) == 0 || (s.Client == "") != (secret == "") {
			return misused("give --host for each host of the platform's login, and --client and --secret-file together or " +
				"neither; --off switches the sign-on off")
		}
		for i, host := range s.Hosts {
			if s.Hosts[i], err = platforms.Origin(host); err != nil {
				return err
			}
		}
		if secret != "" {
			raw, err := readFrom(c, secret)
			if s.Secret = strings.TrimSpace(string(raw)); err != nil || s.Secret == "" {
				return errors.Join(err, fmt.Errorf("%s holds no secret: give the file with the client's", secret))
			}
		}
		return become(&s, "People of platform "+name+" sign on by its login")
	})
}

func newPlatformOIDC() *cobra.Command {
	var off bool
	c := &cobra.Command{
		Use: "oidc FILE", Short: "Let people see pages by a login of yours",
		Args:              takes(0, 1, "a FILE, - for the standard input"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault), // names of files
		Long: `Let people see pages by a login of yours that speaks OpenID Connect. The FILE has
all of it, and is not needed afterwards:

  {"issuer": "https://login.example.com", "client_id": "longshore",
   "client_secret": "...", "scopes": ["groups"],
   "rules": [
     {"claim": "groups", "value": "dba", "platform": "*"},
     {"claim": "groups", "value": "shop", "platform": "korifi",
      "organization": "NAMESPACE-OR-GUID"},
     {"claim": "groups", "value": "operators", "console": "act"}]}

Register the client with the broker's own address, followed by
/dashboard/callback. A rule shows the instances of a platform, or of one
organization of it (and with "acts": true lets its people upgrade them, and delete
again what could not be deleted), or the console, to read or to act.`,
		Example: "  longshore platform oidc login.json --stack Longshore",
	}
	c.Flags().BoolVar(&off, "off", false, "forget the login")
	return manages(c, func(c *cobra.Command, registrar platforms.Registrar, file string) error {
		var login *platforms.OIDC
		said := "Nobody signs on by a login of yours"
		switch raw, err := readFrom(c, file); {
		case off:
		case file == "":
			return misused("give a FILE, or --off")
		case err != nil:
			return err
		default:
			if login, err = platforms.DecodeOIDC(raw); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			said = "People sign on by " + login.Issuer
		}
		return changed(c, registrar, func(r platforms.Registry) (platforms.Registry, error) { return r.WithOIDC(login) },
			said+", in a minute at the latest.")
	})
}

// readFrom reads a file with a secret, which must not be passed as an argument; it reads nothing if
// the name is empty.
func readFrom(c *cobra.Command, name string) ([]byte, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return io.ReadAll(c.InOrStdin())
	}
	return os.ReadFile(name)
}
