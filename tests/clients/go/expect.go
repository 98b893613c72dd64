package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
)

// same fails unless two values are equal, as Kubernetes compares: nothing and an empty list are the same.
func same[T any](what string, got, want T) error {
	if equality.Semantic.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s differs (- got, + want):\n%s", what, diff.Diff(got, want))
}

// refused fails unless an error is there and of the right sort.
func refused(what string, err error, isExpected func(error) bool) error {
	if isExpected(err) {
		return nil
	}
	return fmt.Errorf("%s was answered by: %v", what, err)
}

// next takes what comes by a channel, or fails with what was waited for.
func next[T any](ctx context.Context, what string, from <-chan T) (T, error) {
	select {
	case got, open := <-from:
		if !open {
			return got, fmt.Errorf("%s: the channel was closed", what)
		}
		return got, nil
	case <-ctx.Done():
		var nothing T
		return nothing, fmt.Errorf("waited in vain for %s", what)
	}
}

// expect takes what comes by a channel and fails unless it is what it should be.
func expect[T any](ctx context.Context, what string, from <-chan T, want T) error {
	got, err := next(ctx, what, from)
	if err != nil {
		return err
	}
	return same(what, got, want)
}
