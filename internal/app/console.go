package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// A Console does what the commands of an operator ask for, wherever the broker runs;
// package operator documents it.
type Console interface {
	List(ctx context.Context, q operator.Query, cursor string) (rows []operator.Row, next string, err error)
	Retry(ctx context.Context, token string) (operator.Row, error)
	Recreate(ctx context.Context, token string) (operator.Row, error)
	Settle(ctx context.Context, token, message string) (operator.Row, error)
	Owner(ctx context.Context, name string) (operator.Row, error)
	Reports(ctx context.Context) ([]ledger.Report, error)
	Inventory(ctx context.Context) (ledger.Inventory, error)
	Resume(ctx context.Context) error
	Quarantined(ctx context.Context, after string) (page []lifecycle.Quarantine, next string, err error)
	Retained(ctx context.Context, after string) (page []lifecycle.Retained, next string, err error)
	Upgrades(ctx context.Context, after string) (page []operator.Upgrade, next string, err error)
	Undelete(ctx context.Context, u operator.Undeletion) (operator.Undeleted, error)
	Release(ctx context.Context, name string) (lifecycle.Quarantine, error)
	Discard(ctx context.Context, name string) (operator.Row, error)
	Rebuild(ctx context.Context) (operator.Rebuilt, error)
	Reconcile(ctx context.Context, provider, target string, meant bool) ([]operator.Reconciled, error)
}

// newConsole makes a console of what o says; all else is the same in every program.
func newConsole(
	records *ledger.Ledger, offered *catalog.Catalog, wired map[string]provider.Wired, o operator.Options,
) *operator.Console {
	o.Records, o.Catalog, o.ServiceOf = records, offered.Plan, offered.ServiceOf
	o.NewID, o.OperationTimeout = newID, operationTimeout
	o.Inventories, o.Servers = inventories(records, wired), servers(wired)
	return operator.New(o)
}

// StackConsole is for a deployed broker. It uses the caller's own rights: to describe
// the stack, to read, scan and write its table, to use its key, to start executions,
// and to list what providers hold.
func StackConsole(ctx context.Context, stack string, offered *catalog.Catalog) (Console, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	said, err := outputs.Of(ctx, cloudformation.NewFromConfig(cfg), stack)
	if err != nil {
		return nil, err
	}
	machine := said[outputs.StateMachine]
	parts := strings.Split(machine, ":")
	if len(parts) < 6 || said[outputs.Table] == "" || said[outputs.Key] == "" || said[outputs.Broker] == "" {
		return nil, fmt.Errorf("stack %q does not say which broker it is, or where its table, its key and its state machine are: deploy it by "+
			"this version", stack)
	}
	engine := stepfunctions.New(sfn.NewFromConfig(cfg), nil, stepfunctions.Options{StateMachine: machine})
	records := ledger.New(dynamo.New(dynamodb.NewFromConfig(cfg), said[outputs.Table], dynamo.Options{}), newID)
	set := fromOutside(stack, said)
	d := Deployed{
		Config: cfg, Log: slog.New(slog.DiscardHandler), Invoker: lambda.NewFromConfig(cfg),
		Getenv:  func(name string) string { return set[name] },
		Offered: func() (*catalog.Catalog, error) { return offered, nil },
	}
	wired, err := d.wired()
	if err != nil {
		return nil, err
	}
	sealing := kms.New(awskms.NewFromConfig(cfg), said[outputs.Key])
	return newConsole(records, offered, wired, operator.Options{
		Platforms: platformNames(secretRegistrar{secretsmanager.NewFromConfig(cfg), said[outputs.Secret]}), Names: namesOf(stack),
		Vault: sealing, Whose: ledger.Identity{Deployment: stack, Broker: said[outputs.Broker]}, Now: now, Start: engine.Start,
	}), nil
}

// fileControl is the socket through which a running broker is asked.
const fileControl = "control.sock"

// maxSocketPath is what all systems allow for the path of a socket.
const maxSocketPath = 100

// FolderConsole is for the embedded broker over a data folder: a running broker is
// asked, otherwise the folder is opened. Close it in the end. If lost is not nil, lost
// records and a lost key are no error: what is left of them is set aside, new ones are
// begun, and lost is told at once what a rebuild cannot bring back. The catalog is
// loaded, and providers are set up by the environment, only if no broker runs.
func FolderConsole(
	ctx context.Context, dir string, load func() (*catalog.Catalog, error), getenv func(string) string, lost func(what string),
) (_ Console, closing func(), _ error) {
	if _, found, err := readMarker(filepath.Join(dir, fileMarker)); err != nil || !found {
		return nil, nil, notAFolder(dir, err)
	}
	remote := newRemote(filepath.Join(dir, fileControl))
	if remote.answers(ctx) {
		return remote, func() {}, nil
	}
	offered, err := load()
	if err != nil {
		return nil, nil, err
	}
	open := lookInto
	if lost != nil {
		open = func(dir string) (*folder, error) { return openFolder(dir, true) }
	}
	f, err := open(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, what := range f.damaged {
		lost(what)
	}
	var wired map[string]provider.Wired
	var left map[string]error
	if !f.toRead { // providers write, and nothing can be done with what they have
		wired, left, err = wiredIn(rows(), f, offered, getenv, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		f.close()
		return nil, nil, err
	}
	records := ledger.New(f.records, newID)
	console := newConsole(records, offered, wired, operator.Options{
		Vault: f.vault, Whose: f.whose(), Now: f.clock.Now, Lost: lost,
		Platforms: platformNames(folderRegistrar{dir}), Names: namesOf(f.mark.Broker),
	})
	for name, why := range left {
		if slices.Contains(f.mark.Providers, name) {
			console.Inventories[name] = absent{why} // otherwise what it holds would seem to be gone
		}
	}
	return folderConsole{console, f}, func() {
		closeAll(wired)
		f.close()
	}, nil
}

// A folderConsole is for a folder on which no broker runs.
type folderConsole struct {
	*operator.Console
	folder *folder
}

// Rebuild implements Console.
func (c folderConsole) Rebuild(ctx context.Context) (operator.Rebuilt, error) {
	out, err := c.Console.Rebuild(ctx)
	out.Damaged = c.folder.damaged
	if err == nil {
		err = c.folder.rebuilt(ctx)
	}
	return out, err
}

// verbBackup is the verb whose answer is a file.
const verbBackup = "backup"

// An ask is what each other verb of the socket takes, and a tell is what it gives, as
// JSON.
type ask struct {
	Query   operator.Query `json:"query,omitzero"`
	Token   string         `json:"token,omitempty"`
	Message string         `json:"message,omitempty"`
	Name    string         `json:"name,omitempty"`
	After   string         `json:"after,omitempty"`
	Target  string         `json:"target,omitempty"`
	Meant   bool           `json:"meant,omitempty"`
	// Undeletion is for the verb undelete.
	Undeletion operator.Undeletion `json:"undeletion,omitzero"`
}

type tell struct {
	Rows        []operator.Row         `json:"rows,omitempty"`
	Reports     []ledger.Report        `json:"reports,omitempty"`
	Inventory   ledger.Inventory       `json:"inventory,omitzero"`
	Rebuilt     operator.Rebuilt       `json:"rebuilt,omitzero"`
	Reconciled  []operator.Reconciled  `json:"reconciled,omitempty"`
	Quarantined []lifecycle.Quarantine `json:"quarantined,omitempty"`
	Retained    []lifecycle.Retained   `json:"retained,omitempty"`
	Upgrades    []operator.Upgrade     `json:"upgrades,omitempty"`
	Undeleted   operator.Undeleted     `json:"undeleted,omitzero"`
	Next        string                 `json:"next,omitempty"`
	// Refused and Failed are errors, of which the first says what to do.
	Refused string `json:"refused,omitempty"`
	Failed  string `json:"failed,omitempty"`
}

// A control answers operators on a socket that only the folder's owner can reach.
type control struct {
	server   *http.Server
	listener net.Listener
}

// openControl listens. If a socket cannot be made, the broker runs without.
func openControl(dir string, c Console, save stream, log *slog.Logger) *control {
	path := filepath.Join(dir, fileControl)
	if len(path) > maxSocketPath {
		log.Warn("operators' commands cannot reach this broker while it runs: the path of its data folder is too long for a socket")
		return nil
	}
	_ = os.Remove(path) // of a process that died: the folder is ours
	listener, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		log.Warn("operators' commands cannot reach this broker while it runs", "error", err)
		return nil
	}
	mux := http.NewServeMux()
	for verb, do := range verbs(c) {
		mux.Handle("POST /"+verb, do)
	}
	mux.Handle("POST /"+verbBackup, save)
	s := &control{server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener: listener}
	go func() { _ = s.server.Serve(listener) }()
	return s
}

// A verb is one thing that an operator asks of a running broker.
type verb func(ctx context.Context, a ask) (tell, error)

func (do verb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var a ask
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&a); err != nil {
		http.Error(w, "not an operator's request", http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(told(do(r.Context(), a))) // the operator may have gone
}

// told adds an error to a tell.
func told(t tell, err error) tell {
	if refusal, ok := errors.AsType[*operator.Refusal](err); ok {
		t.Refused = refusal.Message
	} else if err != nil {
		t.Failed = err.Error()
	}
	return t
}

// err is the error in a tell.
func (t tell) err() error {
	switch {
	case t.Refused != "":
		return &operator.Refusal{Message: t.Refused}
	case t.Failed != "":
		return errors.New(t.Failed)
	}
	return nil
}

func verbs(c Console) map[string]verb {
	all := pagedVerbs(c)
	maps.Copy(all, map[string]verb{
		"list": func(ctx context.Context, a ask) (t tell, err error) {
			t.Rows, t.Next, err = c.List(ctx, a.Query, a.After)
			return t, err
		},
		"retry": func(ctx context.Context, a ask) (tell, error) {
			row, err := c.Retry(ctx, a.Token)
			return tell{Rows: []operator.Row{row}}, err
		},
		"recreate": func(ctx context.Context, a ask) (tell, error) {
			row, err := c.Recreate(ctx, a.Token)
			return tell{Rows: []operator.Row{row}}, err
		},
		"settle": func(ctx context.Context, a ask) (tell, error) {
			row, err := c.Settle(ctx, a.Token, a.Message)
			return tell{Rows: []operator.Row{row}}, err
		},
		"owner": func(ctx context.Context, a ask) (tell, error) {
			row, err := c.Owner(ctx, a.Name)
			return tell{Rows: []operator.Row{row}}, err
		},
		"reports": func(ctx context.Context, _ ask) (t tell, err error) {
			t.Reports, err = c.Reports(ctx)
			return t, err
		},
		"inventory": func(ctx context.Context, _ ask) (t tell, err error) {
			t.Inventory, err = c.Inventory(ctx)
			return t, err
		},
		"undelete": func(ctx context.Context, a ask) (t tell, err error) {
			t.Undeleted, err = c.Undelete(ctx, a.Undeletion)
			return t, err
		},
		"release": func(ctx context.Context, a ask) (tell, error) {
			q, err := c.Release(ctx, a.Name)
			return tell{Quarantined: []lifecycle.Quarantine{q}}, err
		},
		"discard": func(ctx context.Context, a ask) (tell, error) {
			row, err := c.Discard(ctx, a.Name)
			return tell{Rows: []operator.Row{row}}, err
		},
		"rebuild": func(ctx context.Context, _ ask) (t tell, err error) {
			t.Rebuilt, err = c.Rebuild(ctx)
			return t, err
		},
		"reconcile": func(ctx context.Context, a ask) (t tell, err error) {
			t.Reconciled, err = c.Reconcile(ctx, a.Name, a.Target, a.Meant)
			return t, err
		},
		"resume": func(ctx context.Context, _ ask) (tell, error) { return tell{}, c.Resume(ctx) },
	})
	return all
}

// pagedVerbs are the verbs that list things of one kind, page by page.
func pagedVerbs(c Console) map[string]verb {
	return map[string]verb{
		"quarantined": func(ctx context.Context, a ask) (t tell, err error) {
			t.Quarantined, t.Next, err = c.Quarantined(ctx, a.After)
			return t, err
		},
		"retained": func(ctx context.Context, a ask) (t tell, err error) {
			t.Retained, t.Next, err = c.Retained(ctx, a.After)
			return t, err
		},
		"upgrades": func(ctx context.Context, a ask) (t tell, err error) {
			t.Upgrades, t.Next, err = c.Upgrades(ctx, a.After)
			return t, err
		},
	}
}

func (s *control) close() {
	if s != nil {
		_ = s.listener.Close() // removes the socket, also before the server has taken it over
		_ = s.server.Close()
	}
}

// A remote asks a running broker.
type remote struct {
	client *http.Client
	dial   func(ctx context.Context, _, _ string) (net.Conn, error)
}

func newRemote(path string) remote {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return remote{dial: dial, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}}
}

// answers reports whether a broker runs: it takes the connection, whatever it then
// answers. A broker that is asked nothing because it once answered with a fault would
// seem to be another process that holds the folder.
func (r remote) answers(ctx context.Context) bool {
	conn, err := r.dial(ctx, "", "")
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// longVerbs are the verbs that may take long, and how long.
var longVerbs = map[string]time.Duration{"reconcile": time.Hour, "owner": time.Hour, "rebuild": time.Hour}

func (r remote) ask(ctx context.Context, verb string, a ask) (t tell, _ error) {
	body, err := json.Marshal(a)
	if err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(longVerbs[verb], time.Minute))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://broker/"+verb, bytes.NewReader(body))
	if err != nil {
		return t, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return t, fmt.Errorf("asking the running broker: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return t, fmt.Errorf("the running broker knows no %q: it is of another version", verb)
	}
	if err := json.NewDecoder(response.Body).Decode(&t); err != nil {
		return t, fmt.Errorf("asking the running broker: %w", err)
	}
	return t, t.err()
}

// List implements Console.
func (r remote) List(ctx context.Context, q operator.Query, cursor string) (rows []operator.Row, next string, err error) {
	t, err := r.ask(ctx, "list", ask{Query: q, After: cursor})
	return t.Rows, t.Next, err
}

// Retry implements Console.
func (r remote) Retry(ctx context.Context, token string) (operator.Row, error) {
	t, err := r.ask(ctx, "retry", ask{Token: token})
	return t.row(), err
}

// Recreate implements Console.
func (r remote) Recreate(ctx context.Context, token string) (operator.Row, error) {
	t, err := r.ask(ctx, "recreate", ask{Token: token})
	return t.row(), err
}

// Settle implements Console.
func (r remote) Settle(ctx context.Context, token, message string) (operator.Row, error) {
	t, err := r.ask(ctx, "settle", ask{Token: token, Message: message})
	return t.row(), err
}

// Owner implements Console.
func (r remote) Owner(ctx context.Context, name string) (operator.Row, error) {
	t, err := r.ask(ctx, "owner", ask{Name: name})
	return t.row(), err
}

// Reports implements Console.
func (r remote) Reports(ctx context.Context) ([]ledger.Report, error) {
	t, err := r.ask(ctx, "reports", ask{})
	return t.Reports, err
}

// Inventory implements Console.
func (r remote) Inventory(ctx context.Context) (ledger.Inventory, error) {
	t, err := r.ask(ctx, "inventory", ask{})
	return t.Inventory, err
}

// Resume implements Console.
func (r remote) Resume(ctx context.Context) error {
	_, err := r.ask(ctx, "resume", ask{})
	return err
}

// Quarantined implements Console.
func (r remote) Quarantined(ctx context.Context, after string) ([]lifecycle.Quarantine, string, error) {
	t, err := r.ask(ctx, "quarantined", ask{After: after})
	return t.Quarantined, t.Next, err
}

// Upgrades implements Console.
func (r remote) Upgrades(ctx context.Context, after string) ([]operator.Upgrade, string, error) {
	t, err := r.ask(ctx, "upgrades", ask{After: after})
	return t.Upgrades, t.Next, err
}

// Retained implements Console.
func (r remote) Retained(ctx context.Context, after string) ([]lifecycle.Retained, string, error) {
	t, err := r.ask(ctx, "retained", ask{After: after})
	return t.Retained, t.Next, err
}

// Undelete implements Console.
func (r remote) Undelete(ctx context.Context, u operator.Undeletion) (operator.Undeleted, error) {
	t, err := r.ask(ctx, "undelete", ask{Undeletion: u})
	return t.Undeleted, err
}

// Release implements Console.
func (r remote) Release(ctx context.Context, name string) (q lifecycle.Quarantine, _ error) {
	t, err := r.ask(ctx, "release", ask{Name: name})
	if len(t.Quarantined) > 0 {
		q = t.Quarantined[0]
	}
	return q, err
}

// Discard implements Console.
func (r remote) Discard(ctx context.Context, name string) (operator.Row, error) {
	t, err := r.ask(ctx, "discard", ask{Name: name})
	return t.row(), err
}

// Rebuild implements Console.
func (r remote) Rebuild(ctx context.Context) (operator.Rebuilt, error) {
	t, err := r.ask(ctx, "rebuild", ask{})
	return t.Rebuilt, err
}

// Reconcile implements Console.
func (r remote) Reconcile(ctx context.Context, provider, target string, meant bool) ([]operator.Reconciled, error) {
	t, err := r.ask(ctx, "reconcile", ask{Name: provider, Target: target, Meant: meant})
	return t.Reconciled, err
}

func (t tell) row() operator.Row {
	if len(t.Rows) == 0 {
		return operator.Row{}
	}
	return t.Rows[0]
}
