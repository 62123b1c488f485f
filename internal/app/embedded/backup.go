package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/operator/socket"
)

// A Dumper is a provider that can write the content of an instance, in a form that the engine's own programs read.
type Dumper interface {
	Dump(ctx context.Context, in provider.Instance, to io.Writer) error
}

// Backup saves a data folder, or one instance. If a broker runs on the folder, that broker
// writes the backup; if none runs, only the whole folder can be saved.
func Backup(ctx context.Context, dir string, wish backup.Wish, to io.Writer) error {
	if err := folder.Begun(dir); err != nil {
		return err
	}
	if running := socket.Dial(folder.Control(dir)); running.Answers(ctx) {
		return running.Backup(ctx, wish, to)
	}
	f, err := folder.Open(dir, inputs)
	if err != nil {
		return err
	}
	defer f.Close()
	if !wish.All {
		return &operator.Refusal{Message: "No broker runs on this data folder, and the database server runs with it: " +
			"start the broker, and run the command again."}
	}
	return all(ctx, f, new(quiet), nil, to)
}

// A quiet lets steps through, and can hold them back so that nothing changes.
type quiet struct{ mu sync.RWMutex }

// step returns a step that waits while steps are held back. So a backup has both what the step
// recorded when it began and the effect that it had when it ended, or neither.
func (q *quiet) step(do workflow.Step) workflow.Step {
	return func(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
		q.mu.RLock()
		defer q.mu.RUnlock()
		return do(ctx, ref)
	}
}

// hold waits for the running steps, and holds back others until f returns.
func (q *quiet) hold(f func() error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return f()
}

// all writes a whole folder. Server is the database server that the broker runs in the folder; nil for
// none. A server that outlived a killed broker would be copied while it writes, so that is refused.
func all(ctx context.Context, f *folder.Folder, q *quiet, server *backup.Server, to io.Writer) error {
	lives := filepath.Join(f.Path(app.ProviderPostgres), "data", "postmaster.pid")
	if _, err := os.Lstat(lives); server == nil && !errors.Is(err, fs.ErrNotExist) {
		return &operator.Refusal{Message: "The database server of this data folder runs, or was not stopped: start the broker " +
			"with " + servers()[app.ProviderPostgres].flag() + " " + URLEmbedded + ", which takes it over, and run the command " +
			"again."}
	}
	return f.Backup(ctx, q.hold, server, to)
}

// backup writes a backup of the running broker.
func (b *Broker) backup(ctx context.Context, wish backup.Wish, to io.Writer) error {
	if wish.All {
		return all(ctx, b.folder, &b.quiet, b.server, to)
	}
	r, err := b.console.Instance(ctx, wish.Platform, wish.Instance)
	if err != nil {
		return err
	}
	dumper, can := b.providers[r.Provider].Provider.(Dumper)
	if !can {
		return &operator.Refusal{Message: fmt.Sprintf("The provider %s cannot save what is in an instance.", r.Provider)}
	}
	return dumper.Dump(ctx, provider.Instance{
		Broker: r.Made.Broker, Platform: r.Key.Platform, ID: r.Key.Instance, Incarnation: r.Incarnation,
		ServiceID: r.Attributes.ServiceID, PlanID: r.Attributes.PlanID, Snapshot: r.Attributes.Snapshot,
		Target: r.Made.Target, Origin: r.Made.Origin,
	}, to)
}
