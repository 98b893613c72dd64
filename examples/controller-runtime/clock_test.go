package shop

import (
	"k8s.io/utils/clock"

	"mockube.dev/mockube"
)

// An operator that has its time from a clock.WithTicker can be given that of the cluster.
var _ clock.WithTicker = (*mockube.Clock[clock.Timer, clock.Ticker])(nil)
