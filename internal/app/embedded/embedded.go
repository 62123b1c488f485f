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
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/app/web"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
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
	// sweepEvery is the time between two sweeps of the reaper.
	sweepEvery = 5 * time.Second
	// checkEvery is how often CheckRecords checks all records.
	checkEvery = 24 * time.Hour
	// LongestRequest is how long a request may take: it reads and writes its records, waits
	// for its operation, and records the outcome.
	LongestRequest = wired.MaxWait + 2*broker.RecordsTimeout
)

// A Broker is the whole broker in one process. Close stops it.
type Broker struct {
	Handler http.Handler
	// Default is the first platform, as it was at the start.
	Default platforms.Platform
	// Metrics adds up the measurements that operators watch.
	Metrics *metrics.Metrics

	offered   *catalog.Catalog
	console   *operator.Console
	quiet     quiet
	folder    *folder.Folder
	server    *backup.Server // the database server that runs in the folder; nil for none
	programs  string         // the folder of that server's programs
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
	b := &Broker{log: log, swept: make(chan struct{}), Metrics: metrics.Totals()}
	if b.folder, err = folder.Open(s.Data, folder.Options{NewID: app.NewID, Wall: s.wall}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.release()
		}
	}()
	if behind := b.folder.Behind; behind > time.Second {
		log.Warn("the clock is behind the last change in the data folder: the broker continues from the time of that change",
			"behind", behind.Round(time.Second).String())
	}
	known, err := b.platforms(s)
	if err != nil {
		return nil, err
	}
	if err := b.wire(s, offered); err != nil {
		return nil, err
	}
	records, now := ledger.New(b.folder.Records, app.NewID), b.folder.Now
	steps := worker.New(worker.Options{
		Records: records, Vault: b.folder.Vault, Plans: b.offered, Providers: b.providers,
		Now: now, NewID: app.NewID, Log: log, Metrics: b.Metrics, HardTimeout: hardTimeout,
		Alone: true, // no other process uses the folder
	})
	b.engine = inprocess.New(b.quiet.step(steps.Step), inprocess.Options{Inquire: steps.Inquire, Log: log})
	b.reaper = reaper.New(reaper.Options{
		Records: records, Start: b.engine.Start, Now: now, NewID: app.NewID, OperationTimeout: app.OperationTimeout, Log: log,
		Inventory: providers.Inventory(records, b.folder.Whose(), s.ReaperDryRun, b.providers),
	})
	b.Handler = web.New(web.Options{
		Identity: b.folder.Whose().Broker, Origin: s.Origin, Records: records, Catalog: b.offered, Vault: b.folder.Vault,
		Engine: b.engine, Platforms: known, Registry: b.folder.Logins().Registry, RetryAfter: s.RetryAfter,
		PlatformRate: s.PlatformRate, Now: now, Log: log, Metrics: b.Metrics,
	})
	if err := b.resume(); err != nil {
		return nil, err
	}
	b.console = newConsole(b.folder, b.offered, b.providers, operator.Options{Acts: acts.Acts{Start: b.engine.Start},
		Origin: s.Origin})
	b.control = socket.Listen(folder.Control(s.Data), b.console.Call, b.backup, app.Now, log)
	var ctx context.Context
	ctx, b.stop = context.WithCancel(context.Background())
	go b.sweep(ctx)
	return b, nil
}

// wire builds the providers, and hides the offerings of absent ones.
func (b *Broker) wire(s Settings, offered *catalog.Catalog) error {
	warnOfShown(s.Flags, b.log)
	providers, err := wiredIn(rows(), b.folder, embedding{
		offered: offered, offerings: s.Offerings, getenv: s.Getenv, log: b.log,
		serves: func(s backup.Server, programs string) { b.server, b.programs = &s, programs },
	})
	if err != nil {
		return err
	}
	b.providers = providers
	b.offered = without(context.Background(), b.folder, providers, offered, b.log)
	return nil
}

// Watched returns a link to the console in a browser, which may only read.
func (b *Broker) Watched(ctx context.Context) (string, error) {
	link, err := b.console.Watched(ctx, operator.Watch{})
	return link.URL, err
}

func (b *Broker) resume() error {
	ctx := context.Background()
	refs, err := b.reaper.Unsettled(ctx)
	if errors.Is(err, ledger.ErrUnreadable) { // the other operations go on
		b.log.Error("operations on these records cannot go on: stop the broker, and restore the folder from a backup "+
			"or run `longshore rebuild --yes`", "error", err)
	} else if err != nil {
		return fmt.Errorf("finding what was running when the broker stopped: %w", err)
	}
	if len(refs) > 0 {
		b.log.Info("resuming operations", "count", len(refs))
	}
	for _, ref := range refs {
		if err := b.engine.Start(ctx, ref); err != nil {
			return fmt.Errorf("resuming %q: %w", ref.Name(), err)
		}
	}
	return nil
}

func (b *Broker) sweep(ctx context.Context) {
	defer close(b.swept)
	for waiting.For(ctx, sweepEvery) == nil {
		report, err := b.reaper.Sweep(ctx)
		if ctx.Err() != nil {
			err = nil // the sweep was told to end
		}
		report.Log(b.log, err)
		report.Count(b.Metrics)
	}
}

// CheckRecords checks all records in a process of their own, now and then each day until the
// context ends. Once it finds damage, the broker changes nothing until the next start; records
// that are whole can still be read.
func (b *Broker) CheckRecords(ctx context.Context) {
	for again := true; again; again = waiting.For(ctx, checkEvery) == nil {
		found, err := b.folder.Records.Check(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case found.Wrong > 0:
			b.log.Error("the records are damaged, and the broker refuses all changes: stop it, and "+folder.Restore,
				"problems", found.Wrong, "first", found.Problems[0])
			return
		case err != nil:
			b.log.Error("the records could not be checked", "error", err)
		}
	}
}

// Close stops the reaper and the operations after their current call, and releases the data
// folder. Running operations continue at the next start.
func (b *Broker) Close() {
	b.stop()
	<-b.swept
	b.control.Close()
	b.release()
}

// release ends what has been opened: nothing uses the folder any more.
func (b *Broker) release() {
	if b.engine != nil {
		b.engine.Close()
	}
	closeAll(b.providers)
	b.folder.Close()
}
