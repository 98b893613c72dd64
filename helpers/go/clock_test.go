package mockube

import (
	"net/http"
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
