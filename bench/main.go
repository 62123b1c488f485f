package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.longshore, "longshore", "bin/longshore", "the product's `program`")
	flag.StringVar(&o.alone, "alone", "bin/bench/alone", "the `program` that serves Longshore's handler over a store in memory")
	flag.StringVar(&o.peer, "peer", "bin/bench/peer", "the `program` that is compared with")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each measurement")
	flag.IntVar(&o.clients, "clients", 4, "concurrent keep-alive clients")
	flag.DurationVar(&o.measured, "duration", time.Second, "how long a round over loopback is measured")
	flag.DurationVar(&o.long, "inside", 200*time.Millisecond, "how long a round inside the process is measured")
	flag.StringVar(&o.profile, "profile", "",
		"write a processor profile of each case of Longshore's handler into this `folder`, and do nothing else")
	flag.StringVar(&o.only, "only", "",
		"measure this `part` alone: handlers, loopback, together, starts, databases, full or million; the last two are not "+
			"measured otherwise")
	flag.IntVar(&o.instances, "instances", 1_000_000, "how many instances the large folder of million has")
	flag.IntVar(&o.manyDatabases, "databases", 1000, "how many databases the server of full has")
	flag.IntVar(&o.manyBindings, "bindings", 5000, "how many bindings they have together")
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	longshore, alone, peer string
	rounds, clients        int
	instances              int

	manyDatabases, manyBindings int

	measured, long time.Duration
	profile, only  string
}

func run(o options, out io.Writer) (err error) {
	if o.rounds < 1 || o.clients < 1 || o.manyDatabases < 1 {
		return errors.New("there must be at least one round, one client and one database")
	}
	dir, err := os.MkdirTemp("", "longshore-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{options: o, dir: dir, catalog: filepath.Join(dir, "catalog.json")}
	if err := b.prepare(); err != nil {
		return err
	}
	if o.profile != "" {
		return b.profiles()
	}
	_, _ = fmt.Fprintf(out,
		"%s on %s/%s, %d processors, %d rounds, %d clients; ratio: Longshore by brokerapi, median and min..max of the rounds\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.rounds, o.clients)
	for _, part := range []struct {
		name    string
		measure func() (*section, error)
	}{
		{"handlers", b.handlers}, {"loopback", b.loopback}, {"together", b.together}, {"starts", b.starts},
		{"databases", b.databases}, {"full", b.full}, {"million", b.million},
	} {
		if long := part.name == "full" || part.name == "million"; o.only != part.name && (o.only != "" || long) {
			continue
		}
		s, err := part.measure()
		if err != nil {
			return err
		}
		s.print(out)
	}
	return nil
}
