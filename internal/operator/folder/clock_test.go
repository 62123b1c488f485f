package folder

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
)

// The embedded broker's clock never goes back, whatever becomes of the machine's.
func TestTheClockNeverGoesBack(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	wall, passed := start, time.Duration(0)
	c := &clock{wall: func() time.Time { return wall }, elapsed: func() time.Duration { return passed }}
	c.Now()
	for _, tc := range []struct {
		what        string
		wall, later time.Duration // what the machine's clock shows more, and what really passes
		want        time.Duration // since the start
	}{
		{"it follows the machine's", time.Second, time.Second, time.Second},
		{"which is set back: it goes on", -time.Hour, time.Second, 2 * time.Second},
		{"and on", time.Second, time.Second, 3 * time.Second},
		{"which is set right again", time.Hour + time.Second, time.Second, 4 * time.Second},
		{"the machine sleeps", 8 * time.Hour, 0, 8*time.Hour + 3*time.Second},
		{"nothing passes", 0, 0, 8*time.Hour + 3*time.Second},
	} {
		wall, passed = wall.Add(tc.wall), passed+tc.later
		expect.Same(t, tc.what, tc.want, c.Now().Sub(start))
	}
	expect.Same(t, "how far it is behind what was recorded before", 0, c.notBefore(wall.Add(-time.Second)))
	expect.Same(t, "how far it is behind", time.Hour, c.notBefore(wall.Add(time.Hour)))
	passed += time.Minute
	if want := wall.Add(time.Hour + time.Minute); !c.Now().Equal(want) {
		t.Errorf("after a restart with a clock that was set back: %v, want %v", c.Now(), want)
	}
}

// The folder keeps the highest time at which anything was committed: after a
// restart with a clock that was set back meanwhile, times go on from there.
func TestTheFolderKeepsTheHighestTime(t *testing.T) {
	dir := t.TempDir()
	f := expect.Get(Open(dir, inputs))(t)
	ahead := now().Add(time.Hour)
	f.clock.wall = func() time.Time { return ahead }
	expect.OK(t, f.Records.Commit(t.Context(),
		store.Put(store.Record{Key: store.Key{Partition: "p", Sort: "s"}, Writer: "w", Schema: 1, Body: []byte("{}")})))
	f.Close()
	f = expect.Get(Open(dir, inputs))(t)
	defer f.Close()
	if f.Behind < 59*time.Minute || f.Now().Before(ahead) {
		t.Errorf("it is %v, %v behind; the last commit was at %v", f.Now(), f.Behind, ahead)
	}
}
