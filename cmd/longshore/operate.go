package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	counted "github.com/longshore/longshore/internal/base/metrics"
)

// newLog returns the broker's log, in the format text or json.
func newLog(to io.Writer, format, level string) *slog.Logger {
	var least slog.Level
	must(least.UnmarshalText([]byte(level))) // --log-level takes no other word
	o := &slog.HandlerOptions{Level: least}
	var lines slog.Handler = slog.NewTextHandler(to, o)
	if format == "json" {
		lines = slog.NewJSONHandler(to, o)
	}
	return slog.New(logs.Handler{Handler: lines})
}

// healthy answers health checks. A process is healthy even if records are damaged, which no restart repairs.
func healthy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	})
}

// operate answers monitoring on an address of its own, without a login, until the context ends. The
// address may be a public one: its readers learn how much is asked of the broker, but no names.
func operate(ctx context.Context, address string, totals *counted.Metrics, log *slog.Logger) error {
	listener, err := listenOn(ctx, address, "--operate")
	if err != nil {
		return err
	}
	at := listener.Addr().String()
	if !loopback(at) {
		log.Warn("whoever reaches this address can read, without a login, how many requests, operations and faults there "+
			"are: let only your monitoring reach it", "operate", at)
	}
	log.Info("monitoring is answered", "operate", "http://"+at+"/metrics")
	began, mux := time.Now(), http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", counted.ContentType)
		totals.WriteTotals(w)
		writeProcess(w, began)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(bounded(listener, 16)); !errors.Is(err, http.ErrServerClosed) {
			log.Error("monitoring is no longer answered", "error", err)
		}
	}()
	return nil
}

// writeProcess writes the metrics of the process, under the names that the libraries of Prometheus
// use, and the end of the exposition.
func writeProcess(to io.Writer, began time.Time) {
	gauge := func(name string, value float64) { printf(to, "# TYPE %s gauge\n%[1]s %g\n", name, value) }
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		printf(to, "# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total %g\n",
			time.Duration(used.Utime.Nano()+used.Stime.Nano()).Seconds())
	}
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil { // Linux
		if fields := strings.Fields(string(statm)); len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1])
			gauge("process_resident_memory_bytes", float64(pages*os.Getpagesize()))
		}
	}
	if open, err := os.ReadDir("/dev/fd"); err == nil {
		gauge("process_open_fds", float64(len(open)))
	}
	gauge("process_start_time_seconds", float64(began.UnixMilli())/1000)
	gauge("go_goroutines", float64(runtime.NumGoroutine()))
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	gauge("go_memstats_heap_alloc_bytes", float64(heap[0].Value.Uint64()))
	printf(to, "# TYPE longshore_build info\nlongshore_build_info{version=%q} 1\n# EOF\n", versionText())
}
