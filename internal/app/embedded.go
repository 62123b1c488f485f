package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/socket"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/inprocess"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

// Limits of the embedded broker.
const (
	// operationTimeout is the deadline of operations, unless their plan has
	// another.
	operationTimeout = 24 * time.Hour
	callTimeout      = 30 * time.Second
	hardTimeout      = time.Minute
	// sweepEvery is how often the reaper sweeps.
	sweepEvery = 5 * time.Second
	// checkEvery is how often all records are checked.
	checkEvery = 24 * time.Hour
	// LongestRequest is how long a request may take: it reads and writes its records, waits
	// for its work, and records what became of that.
	LongestRequest = wired.MaxWait + 2*broker.RecordsTimeout
	// What its records say whose they are.
	embeddedDeployment = "embedded"
)

// An Embedded is the whole broker in one process. Close it to stop.
type Embedded struct {
	Handler http.Handler
	// Default is the first platform, as it was at the start.
	Default platforms.Platform

	offered   *catalog.Catalog
	console   *operator.Console
	quiet     quiet
	folder    *folder
	getenv    func(string) string
	providers map[string]wired.Provider
	control   *socket.Server
	engine    *inprocess.Engine
	reaper    *reaper.Reaper
	log       *slog.Logger
	stop      context.CancelFunc
	swept     chan struct{}
}

// OpenEmbedded opens the data folder, resumes every operation that was running when the
// last process ended, and starts the reaper.
func OpenEmbedded(s Settings, offered *catalog.Catalog, log *slog.Logger) (_ *Embedded, err error) {
	e := &Embedded{log: log, swept: make(chan struct{})}
	if e.folder, err = openFolder(s.Data, false); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.folder.close()
		}
	}()
	if behind := e.folder.behind; behind > time.Second {
		log.Warn("the clock is behind the last change in the data folder; times go on from there",
			"behind", behind.Round(time.Second).String())
	}
	known, err := e.platforms(s)
	if err != nil {
		return nil, err
	}
	now := e.folder.clock.Now
	if err := e.wire(s, offered); err != nil {
		return nil, err
	}
	providers, offered := e.providers, e.offered
	defer func() {
		if err != nil {
			closeAll(providers)
		}
	}()
	records := ledger.New(e.folder.records, newID)
	steps := worker.New(worker.Options{
		Records: records, Vault: e.folder.vault, Plans: offered,
		Providers: providers,
		Now:       now, NewID: newID, Log: log,
		HardTimeout: hardTimeout,
		Alone:       true, // the folder is this process's
	})
	e.engine = inprocess.New(e.quiet.step(steps.Step), inprocess.Options{Log: log})
	defer func() {
		if err != nil {
			e.engine.Close()
		}
	}()
	e.reaper = reaper.New(reaper.Options{
		Records: records, Start: e.engine.Start, Now: now, NewID: newID, OperationTimeout: operationTimeout, Log: log,
		Inventory: inventory(records, e.folder.whose(), s.ReaperDryRun, providers),
	})
	e.Handler = e.handler(s, known, records)
	if err := e.resume(); err != nil {
		return nil, err
	}
	e.console = newConsole(records, offered, providers, operator.Options{
		Vault: e.folder.vault, Whose: e.folder.whose(), Now: now, Start: e.engine.Start,
		Platforms: platformNames(folderRegistrar{s.Data}), Names: namesOf(e.folder.mark.Broker),
	})
	e.control = socket.Listen(filepath.Join(s.Data, fileControl), e.console.Call, e.backup, log)
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	go e.sweep(ctx)
	return e, nil
}

// wire builds the providers, and hides the offerings of those that are left out.
func (e *Embedded) wire(s Settings, offered *catalog.Catalog) error {
	warnOfShown(s.Servers, e.log)
	providers, left, err := wiredIn(builders(), e.folder, offered, s.Getenv, e.log)
	if err != nil {
		return err
	}
	e.getenv, e.providers = s.Getenv, providers
	e.offered = without(context.Background(), e.folder, providers, left, offered, e.log)
	return nil
}

// platforms are the platforms that may log in. They are read by the machine's clock,
// since rotate says by that until when an old password is valid.
func (e *Embedded) platforms(s Settings) (*platforms.Kept, error) {
	registry, err := folderRegistrar{s.Data}.first(s, e.log)
	if err != nil {
		return nil, err
	}
	e.Default = registry.Platforms[0]
	warnOfShort(registry, s.Data, e.log)
	return platforms.NewKept(context.Background(), folderRegistrar{s.Data}.Registry, now, e.log)
}

// handler answers platforms.
func (e *Embedded) handler(s Settings, known *platforms.Kept, records *ledger.Ledger) http.Handler {
	now := e.folder.clock.Now
	return osb.New(osb.Options{
		Broker: newBroker(broker.Options{
			Identity: e.folder.whose().Broker, Records: records, Catalog: e.offered, Vault: e.folder.vault, Engine: e.engine,
			Now: now, Log: e.log,
		}, s.RetryAfter),
		Platforms: known, Throttle: rates.New(s.PlatformRate, now), Offerings: e.offered.Offerings,
		Now: now, NewID: newID, Log: e.log,
	})
}

// newBroker makes a broker of what o says; all else is the same in every program.
func newBroker(o broker.Options, r RetryAfter) *broker.Broker {
	o.NewID, o.NewSecret = newID, newSecret
	o.SynchronousWait, o.Waits, o.OperationTimeout = wired.DefaultWait, waits, operationTimeout
	o.MinRetryAfter, o.MaxRetryAfter = r.Min, r.Max
	return broker.New(o)
}

func (e *Embedded) resume() error {
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

func (e *Embedded) sweep(ctx context.Context) {
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
		logSweep(e.log, report, err)
	}
}

// CheckRecords has all records checked, by a process of its own, at once and then each
// day until the context ends. Once they are found to be damaged, nothing is changed any
// more before the next start; what is whole can still be read.
func (e *Embedded) CheckRecords(ctx context.Context) {
	for {
		found, err := e.folder.records.Check(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case found.Wrong > 0:
			e.log.Error("the records are damaged, and nothing is changed any more: stop the broker, and "+restore,
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

// logSweep logs what a sweep did, if it did anything.
func logSweep(log *slog.Logger, report reaper.Report, err error) {
	if err != nil {
		log.Error("sweep met faults", "error", err)
	}
	report.Halted, report.Unreached = false, false // the one was said when it happened, the other is among the faults
	if !report.Empty() {
		log.Info("swept", "redriven", report.Redriven, "overdue", report.Overdue, "reclaimed", report.Reclaimed,
			"looks", report.Looks, "orphans", report.Orphans+report.Ended, "quarantined", report.Quarantined,
			"released", report.Released,
			"dropped", report.Dropped, "lost", report.Lost, "faults", report.Faults, "busy", report.Busy)
	}
}

// Close stops the reaper and the operations after their current call, and releases the
// data folder. Running operations go on at the next start.
func (e *Embedded) Close() {
	e.stop()
	<-e.swept
	e.control.Close()
	e.engine.Close()
	closeAll(e.providers)
	e.folder.close()
}

func now() time.Time { return time.Now().UTC() }

// newID is 127 random bits in lifecycle.OperationIDLength characters. The first one is
// a letter, since commands take an argument that begins with a hyphen for a flag.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	b[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func newSecret() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return b
}
