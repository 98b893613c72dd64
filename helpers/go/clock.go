package mockube

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"
)

// A Clock shows the time of a cluster to the code under test, and takes part in advances: an advance stops at the next timer of the
// Clock, and goes on when that timer has fired and no request arrives any more.
//
// It has the methods of clock.WithTicker of k8s.io/utils/clock, if the types of that package are its arguments:
//
//	clock := mockube.NewClock[clock.Timer, clock.Ticker](t, cluster, "shop-operator")
type Clock[Timer, Ticker any] struct{ follower *follower }

// NewClock returns a Clock until the end of the test. Its name is that of its object, a ClockParticipant.
func NewClock[Timer, Ticker any](tb testing.TB, cluster *Cluster, name string) *Clock[Timer, Ticker] {
	tb.Helper()
	return &Clock[Timer, Ticker]{follow(tb, cluster, name)}
}

// Now returns the time of the cluster.
func (c *Clock[Timer, Ticker]) Now() time.Time { return c.follower.now() }

// Since returns the time since then.
func (c *Clock[Timer, Ticker]) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// After returns a channel that gets the time after a while.
func (c *Clock[Timer, Ticker]) After(while time.Duration) <-chan time.Time {
	return c.follower.newTimer(while, 0).channel
}

// Sleep waits for a while.
func (c *Clock[Timer, Ticker]) Sleep(while time.Duration) { <-c.After(while) }

// Tick returns a channel that gets the time again and again.
func (c *Clock[Timer, Ticker]) Tick(period time.Duration) <-chan time.Time {
	return c.follower.newTimer(period, period).channel
}

// NewTimer returns a timer, with the methods C, Stop and Reset.
func (c *Clock[Timer, Ticker]) NewTimer(while time.Duration) Timer {
	return any(&clockTimer{c.follower.newTimer(while, 0)}).(Timer)
}

// NewTicker returns a ticker, with the methods C and Stop.
func (c *Clock[Timer, Ticker]) NewTicker(period time.Duration) Ticker {
	return any(&clockTicker{c.follower.newTimer(period, period)}).(Ticker)
}

type clockTimer struct{ timer *timer }

func (t *clockTimer) C() <-chan time.Time            { return t.timer.channel }
func (t *clockTimer) Stop() bool                     { return t.timer.follower.stop(t.timer) }
func (t *clockTimer) Reset(while time.Duration) bool { return t.timer.follower.reset(t.timer, while) }

type clockTicker struct{ timer *timer }

func (t *clockTicker) C() <-chan time.Time { return t.timer.channel }
func (t *clockTicker) Stop()               { t.timer.follower.stop(t.timer) }

// A timer fires at a time of the cluster, and again after each period if it has one.
type timer struct {
	follower *follower
	channel  chan time.Time
	due      time.Time
	period   time.Duration
}

// A reading is what the clock of the cluster showed at a time of the machine, and how fast it runs.
type reading struct {
	Time time.Time `json:"time"`
	At   time.Time `json:"at"`
	Rate float64   `json:"rate"`
}

// A follower follows the clock of a cluster, and fires timers by it.
type follower struct {
	cluster *Cluster
	path    string
	changed chan struct{}

	mutex   sync.Mutex
	reading reading
	timers  map[*timer]bool
}

// resolution is that of the times of the cluster.
const resolution = time.Microsecond

func follow(tb testing.TB, cluster *Cluster, name string) *follower {
	tb.Helper()
	resource := group + "/clockparticipants"
	err := cluster.client.do(http.MethodPost, resource, newObject("ClockParticipant", name, struct{}{}), nil)
	if IsNotFound(err) {
		tb.Fatal("this server has no ClockParticipants")
	}
	must(tb, err)
	f := &follower{cluster: cluster, path: resource + "/" + name, changed: make(chan struct{}, 1), timers: map[*timer]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	readings, failed := make(chan reading), make(chan error, 1)
	ended := make(chan struct{})
	go func() { failed <- f.read(ctx, readings) }()
	tb.Cleanup(func() {
		cancel()
		<-ended
		must(tb, cluster.client.do(http.MethodDelete, f.path, nil, nil))
	})
	select {
	case f.reading = <-readings:
	case err := <-failed:
		close(ended)
		tb.Fatalf("this server does not show its clock: %v", err)
	}
	go func() {
		defer close(ended)
		if err := f.run(ctx, readings, failed); err != nil {
			tb.Error(err)
		}
	}()
	return f
}

// read sends the readings of the clock until the context ends, or returns why there are no more before.
func (f *follower) read(ctx context.Context, readings chan<- reading) error {
	response, err := f.cluster.client.stream(ctx, "/mockube/clock")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return decode(ctx, response.Body, readings)
}

func decode(ctx context.Context, stream io.Reader, readings chan<- reading) error {
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		var next reading
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return err
		}
		select {
		case readings <- next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// run fires timers, and writes when the next one is due. Without readings time would stand still, and a test would wait for its timers.
func (f *follower) run(ctx context.Context, readings <-chan reading, failed <-chan error) error {
	var written [2]string
	for {
		spec, wait := f.fire()
		if spec != written {
			if err := f.write(spec); err != nil && ctx.Err() == nil {
				return err
			}
			written = spec
		}
		due := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-due.C:
		case <-f.changed:
		case next := <-readings:
			f.mutex.Lock()
			f.reading = next
			f.mutex.Unlock()
		case err := <-failed:
			if ctx.Err() == nil {
				return fmt.Errorf("the server does not show its clock any more, and timers stand still: %w", err)
			}
		}
		due.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// fire fires the timers that are due, and returns at which time the program is idle if the clock stands still, when the next timer is due,
// and how long that is for the machine.
func (f *follower) fire() (spec [2]string, wait time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.nowLocked()
	var next time.Time
	for each := range f.timers {
		if !each.due.After(now) {
			f.fireLocked(each, now)
		}
		if f.timers[each] && (next.IsZero() || each.due.Before(next)) {
			next = each.due
		}
	}
	wait = math.MaxInt64
	if !next.IsZero() {
		spec[1] = timestamp(next)
		if f.reading.Rate > 0 {
			wait = time.Duration(float64(next.Sub(now))/f.reading.Rate) + resolution
		}
	}
	if f.reading.Rate == 0 {
		spec[0] = timestamp(now)
	}
	return spec, wait
}

func (f *follower) fireLocked(due *timer, now time.Time) {
	select {
	case due.channel <- now:
	default: // as with the timers of Go, nobody has read the last time
	}
	if due.period == 0 {
		delete(f.timers, due)
		return
	}
	missed := now.Sub(due.due) / due.period
	due.due = due.due.Add((missed + 1) * due.period)
}

func (f *follower) write(spec [2]string) error {
	fields := map[string]any{"idleAt": nil, "nextTimer": nil}
	for index, name := range []string{"idleAt", "nextTimer"} {
		if spec[index] != "" {
			fields[name] = spec[index]
		}
	}
	return f.cluster.client.do(http.MethodPatch, f.path, map[string]any{"spec": fields}, nil)
}

func (f *follower) now() time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.nowLocked()
}

func (f *follower) nowLocked() time.Time {
	passed := float64(time.Since(f.reading.At)) * f.reading.Rate
	return f.reading.Time.Add(time.Duration(passed))
}

func (f *follower) newTimer(while, period time.Duration) *timer {
	created := &timer{follower: f, channel: make(chan time.Time, 1), period: period}
	f.reset(created, while)
	return created
}

// reset lets a timer fire after a while, and returns whether it was to fire.
func (f *follower) reset(changed *timer, while time.Duration) bool {
	f.mutex.Lock()
	wasActive := f.timers[changed]
	changed.due = f.nowLocked().Add(while + resolution - 1).Truncate(resolution)
	f.timers[changed] = true
	f.mutex.Unlock()
	f.wake()
	return wasActive
}

// stop lets a timer not fire, and returns whether it was to fire.
func (f *follower) stop(stopped *timer) bool {
	f.mutex.Lock()
	wasActive := f.timers[stopped]
	delete(f.timers, stopped)
	f.mutex.Unlock()
	f.wake()
	return wasActive
}

func (f *follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default: // it will see this change, too
	}
}

func timestamp(moment time.Time) string { return moment.UTC().Format("2006-01-02T15:04:05.000000Z") }
