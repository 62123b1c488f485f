package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app/console"
	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/operator"
)

// A whichBroker says which broker a command is for: one on a data folder, or a deployed one.
type whichBroker struct {
	data, stack string
	offerings   string // the folder of the operator's own offerings, as for serve or at deploy
	// lost allows a rebuild to replace lost records, and is called for each loss; nil allows no replacement.
	lost func(what string)
	// getenv configures the providers where no broker runs; nil sets up no providers.
	getenv func(string) string
}

// dataFolder is the default data folder.
const dataFolder = ".longshore"

// flags adds the flags that say where the broker is, and what it offers.
func (p *whichBroker) flags(c *cobra.Command) {
	p.whereabouts(c)
	c.Flags().StringVar(&p.offerings, "offerings", "", "`DIR` of the broker's own offerings")
}

// whereabouts adds the flags that say where the broker is.
func (p *whichBroker) whereabouts(c *cobra.Command) {
	c.Flags().StringVar(&p.data, "data", dataFolder, "data `DIR` of the broker, which may run or not")
	c.Flags().StringVar(&p.stack, "stack", "", "`NAME` of the broker's stack on AWS, in place of --data")
	c.PreRunE = oneBroker
}

// oneBroker refuses a folder and a stack at once: it would not be clear which of the two brokers is meant.
func oneBroker(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("data") && c.Flags().Changed("stack") {
		return misused("--data names a broker over a folder, --stack one on AWS: give only one of them")
	}
	return nil
}

// open returns a link to the broker's console; the caller calls closing in the end.
func (p *whichBroker) open(ctx context.Context) (_ operator.Link, closing func(), _ error) {
	if p.stack != "" {
		all, err := offeringfiles.Load(p.offerings)
		if err != nil {
			return nil, nil, err
		}
		link, err := console.Stack(ctx, p.stack, all)
		return link, func() {}, err
	}
	return embedded.Console(ctx, p.data, p.offerings, p.getenv, p.lost)
}

// ask calls one method of the broker.
func ask[In, Out any](ctx context.Context, p whichBroker, m operator.Method[In, Out], in In) (out Out, _ error) {
	link, closing, err := p.open(ctx)
	if err != nil {
		return out, err
	}
	defer closing()
	return m.Ask(ctx, link, in)
}

// printf prints without checking for an error; see output.
func printf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

func printJSON[T any](out io.Writer, v T) {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}
