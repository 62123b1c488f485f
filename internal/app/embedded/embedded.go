// Package embedded wires the broker of one machine: a data folder, an HTTP handler, and the engine in this process.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/console"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/operator/socket"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/inprocess"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

// Limits of the embedded broker.
const (
	callTimeout = 30 * time.Second
	hardTimeout = time.Minute
	// sweepEvery is how often the reaper sweeps.
	sweepEvery = 5 * time.Second
	// checkEvery is how often all records are checked.
	checkEvery = 24 * time.Hour
	// LongestRequest is how long a request may take: it reads and writes its records, waits
	// for its work, and records what became of that.
	LongestRequest = wired.MaxWait + 2*broker.RecordsTimeout
)

// A Broker is the whole broker in one process. Close it to stop.
type Broker struct {
	Handler http.Handler
	// Default is the first platform, as it was at the start.
	Default platforms.Platform

	offered   *catalog.Catalog
	console   *operator.Console
	quiet     quiet
	folder    *folder.Folder
	server    *backup.Server // the database server that runs in it; nil for none
	getenv    func(string) string
	providers map[string]wired.Provider
	control   *socket.Server
	engine    *inprocess.Engine
	reaper    *reaper.Reaper
	log       *slog.Logger
	stop      context.CancelFunc
	swept     chan struct{}
}

// Open opens the data folder, resumes every operation that was running when the
// last process ended, and starts the reaper.
func Open(s Settings, offered *catalog.Catalog, log *slog.Logger) (_ *Broker, err error) {
	e := &Broker{log: log, swept: make(chan struct{})}
	if e.folder, err = folder.Open(s.Data, folder.Options{NewID: app.NewID, Wall: s.wall}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.folder.Close()
		}
	}()
	if behind := e.folder.Behind; behind > time.Second {
		log.Warn("the clock is behind the last change in the data folder; times go on from there",
			"behind", behind.Round(time.Second).String())
	}
	known, err := e.platforms(s)
	if err != nil {
		return nil, err
	}
	now := e.folder.Now
	if err := e.wire(s, offered); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(e.providers)
		}
	}()
	records := ledger.New(e.folder.Records, app.NewID)
	steps := worker.New(worker.Options{
		Records: records, Vault: e.folder.Vault, Plans: e.offered, Providers: e.providers,
		Now: now, NewID: app.NewID, Log: log, HardTimeout: hardTimeout,
		Alone: true, // the folder is this process's
	})
	e.engine = inprocess.New(e.quiet.step(steps.Step), inprocess.Options{Log: log})
	defer func() {
		if err != nil {
			e.engine.Close()
		}
	}()
	e.reaper = reaper.New(reaper.Options{
		Records: records, Start: e.engine.Start, Now: now, NewID: app.NewID, OperationTimeout: app.OperationTimeout, Log: log,
		Inventory: providers.Inventory(records, e.folder.Whose(), s.ReaperDryRun, e.providers),
	})
	e.Handler = e.handler(s, known, records)
	if err := e.resume(); err != nil {
		return nil, err
	}
	e.console = console.New(records, e.offered, e.providers, operator.Options{
		Vault: e.folder.Vault, Whose: e.folder.Whose(), Now: now, Start: e.engine.Start,
		Platforms: platforms.Names(e.folder.Logins()), Names: adapters.Names(e.folder.Whose().Broker),
	})
	e.control = socket.Listen(folder.Control(s.Data), e.console.Call, e.backup, log)
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	go e.sweep(ctx)
	return e, nil
}

// wire builds the providers, and hides the offerings of those that are left out.
func (e *Broker) wire(s Settings, offered *catalog.Catalog) error {
	warnOfShown(s.Servers, e.log)
	providers, left, err := wiredIn(rows(), e.folder, offered, s.Getenv, func(s backup.Server) { e.server = &s }, e.log)
	if err != nil {
		return err
	}
	e.getenv, e.providers = s.Getenv, providers
	e.offered = without(context.Background(), e.folder, providers, left, offered, e.log)
	return nil
}

// platforms are the platforms that may log in. They are read by the machine's clock,
// since rotate says by that until when an old password is valid.
func (e *Broker) platforms(s Settings) (*platforms.Kept, error) {
	registry, err := registered(e.folder.Logins(), s, e.log)
	if err != nil {
		return nil, err
	}
	e.Default = registry.Platforms[0]
	warnOfShort(registry, s.Data, e.log)
	return platforms.NewKept(context.Background(), e.folder.Logins().Registry, app.Now, e.log)
}

// handler answers platforms.
func (e *Broker) handler(s Settings, known *platforms.Kept, records *ledger.Ledger) http.Handler {
	now := e.folder.Now
	return osb.New(osb.Options{
		Broker: app.NewBroker(broker.Options{
			Identity: e.folder.Whose().Broker, Records: records, Catalog: e.offered, Vault: e.folder.Vault, Engine: e.engine,
			Now: now, Log: e.log,
		}, s.RetryAfter),
		Platforms: known, Throttle: rates.New(s.PlatformRate, now), Offerings: e.offered.Offerings,
		Now: now, NewID: app.NewID, Log: e.log,
	})
}

func (e *Broker) resume() error {
	refs, err := e.reaper.Unsettled(context.Background())
	if errors.Is(err, ledger.ErrUnreadable) { // the rest goes on
		e.log.Error("what runs on these records cannot go on: stop the broker, and restore the folder from a backup "+
			"or run `longshore rebuild --yes`", "error", err)
	} else if err != nil {
		return fmt.Errorf("finding what was running when the broker stopped: %w", err)
	}
	if len(refs) > 0 {
		e.log.Info("resuming operations", "count", len(refs))
	}
	return e.engine.Resume(refs)
}

func (e *Broker) sweep(ctx context.Context) {
	defer close(e.swept)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		report, err := e.reaper.Sweep(ctx)
		if ctx.Err() != nil {
			err = nil // it was told to end
		}
		report.Log(e.log, err)
	}
}

// CheckRecords has all records checked, by a process of its own, at once and then each
// day until the context ends. Once they are found to be damaged, nothing is changed any
// more before the next start; what is whole can still be read.
func (e *Broker) CheckRecords(ctx context.Context) {
	for {
		found, err := e.folder.Records.Check(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case found.Wrong > 0:
			e.log.Error("the records are damaged, and nothing is changed any more: stop the broker, and "+folder.Restore,
				"problems", found.Wrong, "first", found.Problems[0])
			return
		case err != nil:
			e.log.Error("the records could not be checked", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(checkEvery):
		}
	}
}

// Close stops the reaper and the operations after their current call, and releases the
// data folder. Running operations go on at the next start.
func (e *Broker) Close() {
	e.stop()
	<-e.swept
	e.control.Close()
	e.engine.Close()
	closeAll(e.providers)
	e.folder.Close()
}
