package pages

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/base/shell"
)

// A Sample shows how a program connects. It takes credentials from the environment: no page holds any.
type Sample struct{ Name, Code string }

// connect renders the section on how to use an instance.
func (v *view) connect() g.Node {
	if v.State != "ready" && v.State != "updating" {
		return nil
	}
	where := "Bind your application: its platform gives it the credentials. To see them yourself, read a binding."
	command := "" // of the platform, if it is known
	switch name := shell.Word(v.title()); v.names.Platform {
	case "cloudfoundry":
		command = "cf create-service-key " + name + " my-key\ncf service-key " + name + " my-key"
	case "kubernetes":
		command = "kubectl get secret NAME_OF_THE_BINDING -o yaml"
	}
	if command != "" {
		where = "Bind your application: its platform gives it the credentials. To see them yourself:"
	}
	return section("connect", "Connect", h.P(g.Text(where)), g.If(command != "", example("Command that shows credentials",
		command)),
		g.Map(v.samples, func(s Sample) g.Node {
			return h.Details(h.ID("connect-"+s.Name), g.If(s.Name == v.samples[0].Name, g.Attr("open")),
				h.Summary(g.Text(s.Name)), example("Example for "+s.Name, s.Code))
		}))
}
