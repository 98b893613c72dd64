package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leaderChecks = []check{{"leader-election", checkLeaderElection}}

// checkLeaderElection lets one of two lead, and the other once the first has let go.
func checkLeaderElection(ctx context.Context, in *place) error {
	led := make(chan string)
	firstCtx, resign := context.WithCancel(ctx)
	defer resign()
	first, err := elector(in, "one", led)
	if err != nil {
		return err
	}
	resigned := make(chan struct{})
	go func() {
		defer close(resigned)
		first.Run(firstCtx)
	}()
	if err := expect(ctx, "the first leader", led, "one"); err != nil {
		return err
	}
	second, err := elector(in, "two", led)
	if err != nil {
		return err
	}
	go second.Run(ctx)
	resign()
	<-resigned
	if err := expect(ctx, "the second leader", led, "two"); err != nil {
		return err
	}
	lease, err := in.clients.CoordinationV1().Leases(in.namespace).Get(ctx, "lock", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := same("the holder", *lease.Spec.HolderIdentity, "two"); err != nil {
		return err
	}
	return same("how often it changed hands", *lease.Spec.LeaseTransitions, 1)
}

func elector(in *place, identity string, led chan<- string) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "lock", Namespace: in.namespace},
			Client:     in.clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				select {
				case led <- identity:
				case <-ctx.Done():
				}
			},
			OnStoppedLeading: func() {},
		},
	})
}
