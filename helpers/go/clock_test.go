package mockube

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

type (
	testTimer interface {
		C() <-chan time.Time
		Stop() bool
		Reset(time.Duration) bool
	}
	testTicker interface {
		C() <-chan time.Time
		Stop()
	}
)

// newClock returns a clock of the shared cluster, whose time stands still.
func newClock(t *testing.T) *Clock[testTimer, testTicker] {
	t.Helper()
	if IsNotFound(shared.Do(http.MethodGet, group+"/clockparticipants", nil, nil)) {
		t.Skip("this server has no ClockParticipants")
	}
	shared.Pause(t)
	t.Cleanup(func() { shared.Resume(t) })
	return NewClock[testTimer, testTicker](t, shared, "shop-operator")
}

func TestAdvanceStopsAtEachTickOfAClock(t *testing.T) {
	clock := newClock(t)
	ticker := clock.NewTicker(7 * time.Second)
	t.Cleanup(ticker.Stop)
	began := shared.Now(t)
	ticks := make(chan time.Time, 100)
	go func() {
		for range 8 {
			ticks <- <-ticker.C()
		}
	}()
	ended := shared.Advance(t, time.Minute)
	if len(ticks) != 8 {
		t.Fatalf("%d ticks in a minute", len(ticks))
	}
	for count := 1; count <= 8; count++ {
		late := (<-ticks).Sub(began) - time.Duration(count)*7*time.Second
		if late < -time.Second || late > 2*time.Second {
			t.Errorf("tick %d is %v late", count, late)
		}
	}
	if now := clock.Now(); !now.Equal(ended) {
		t.Errorf("the clock shows %v, and that of the cluster %v", now, ended)
	}
}

func TestTimerOfAClockFiresOnceUnlessItIsStopped(t *testing.T) {
	clock := newClock(t)
	fired, stopped := clock.NewTimer(5*time.Second), clock.NewTimer(5*time.Second)
	if !stopped.Stop() || stopped.Stop() {
		t.Error("a timer can be stopped once")
	}
	shared.Advance(t, 10*time.Second)
	select {
	case <-fired.C():
	default:
		t.Error("the timer has not fired")
	}
	if fired.Reset(5*time.Second) || len(fired.C()) != 0 || len(stopped.C()) != 0 {
		t.Error("a timer has fired again, or although it was stopped")
	}
}

func TestClockRunsWithTheCluster(t *testing.T) {
	clock := newClock(t)
	shared.Resume(t)
	began := clock.Now()
	clock.Sleep(100 * time.Millisecond)
	if passed := clock.Since(began); passed < 100*time.Millisecond {
		t.Errorf("%v have passed", passed)
	}
}

func TestClockFailsWhenTheServerShowsItNoMore(t *testing.T) {
	first := `{"time": "2030-01-01T00:00:00Z", "at": "2030-01-01T00:00:00Z", "rate": 1}` + "\n"
	for name, rest := range map[string]string{"cut": "", "no reading": "<html>\n"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			readings, failed := make(chan reading), make(chan error, 1)
			go func() { failed <- decode(ctx, strings.NewReader(first+rest), readings) }()
			clock := &follower{changed: make(chan struct{}, 1), timers: map[*timer]bool{}, reading: <-readings}
			err := clock.run(ctx, readings, failed)
			if err == nil || !strings.HasPrefix(err.Error(), "the server does not show its clock any more") {
				t.Errorf("the error is %v", err)
			}
			cancel()
			failed <- ctx.Err()
			if err := clock.run(ctx, readings, failed); err != nil {
				t.Errorf("a clock that has ended fails: %v", err)
			}
		})
	}
}
