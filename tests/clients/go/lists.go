package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

var listChecks = []check{
	{"pager", checkPager},
	{"page-of-one-moment", checkPageOfOneMoment},
	{"watch-resumes", checkWatchResumes},
	{"watch-retries", checkWatchRetries},
}

const many = 25

// fill makes many ConfigMaps and tells their names.
func fill(ctx context.Context, in *place) ([]string, error) {
	var names []string
	for number := range many {
		name := fmt.Sprintf("map-%02d", number)
		_, err := in.clients.CoreV1().ConfigMaps(in.namespace).Create(ctx, configMap(name, nil), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func checkPager(ctx context.Context, in *place) error {
	names, err := fill(ctx, in)
	if err != nil {
		return err
	}
	var listed []string
	pages := 0
	pager := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		return in.clients.CoreV1().ConfigMaps(in.namespace).List(ctx, options)
	})
	pager.PageSize = 10
	err = pager.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		listed = append(listed, item.(*corev1.ConfigMap).Name)
		return nil
	})
	if err != nil {
		return err
	}
	if err := same("the names", listed, names); err != nil {
		return err
	}
	return same("the number of pages", pages, 3)
}

// checkPageOfOneMoment writes between two pages, which show what was there at the first.
func checkPageOfOneMoment(ctx context.Context, in *place) error {
	if _, err := fill(ctx, in); err != nil {
		return err
	}
	client := in.clients.CoreV1().ConfigMaps(in.namespace)
	first, err := client.List(ctx, metav1.ListOptions{Limit: 10})
	if err != nil {
		return err
	}
	if err := client.Delete(ctx, "map-20", metav1.DeleteOptions{}); err != nil {
		return err
	}
	second, err := client.List(ctx, metav1.ListOptions{Limit: 100, Continue: first.Continue})
	if err != nil {
		return err
	}
	if err := same("the version", second.ResourceVersion, first.ResourceVersion); err != nil {
		return err
	}
	_, err = client.List(ctx, metav1.ListOptions{Limit: 10, Continue: "nonsense"})
	if err := refused("a token of somebody else's", err, apierrors.IsBadRequest); err != nil {
		return err
	}
	return same("the number of items", len(first.Items)+len(second.Items), many)
}

// checkWatchResumes reads the same events twice: as they happen, and from a version on afterwards.
func checkWatchResumes(ctx context.Context, in *place) error {
	client := in.clients.CoreV1().ConfigMaps(in.namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	options := metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	live, err := client.Watch(ctx, options)
	if err != nil {
		return err
	}
	defer live.Stop()
	if err := writeLife(ctx, in); err != nil {
		return err
	}
	asItHappened, err := take(ctx, live, 3)
	if err != nil {
		return err
	}
	if err := same("the events", kinds(asItHappened), []watch.EventType{watch.Added, watch.Modified, watch.Deleted}); err != nil {
		return err
	}
	options.ResourceVersion = asItHappened[0].Object.(*corev1.ConfigMap).ResourceVersion
	resumed, err := client.Watch(ctx, options)
	if err != nil {
		return err
	}
	defer resumed.Stop()
	afterwards, err := take(ctx, resumed, 2)
	if err != nil {
		return err
	}
	return same("what was resumed", afterwards, asItHappened[1:])
}

// checkWatchRetries follows with the watcher that hides broken connections, and filters bookmarks out.
func checkWatchRetries(ctx context.Context, in *place) error {
	client := in.clients.CoreV1().ConfigMaps(in.namespace)
	made, err := client.Create(ctx, configMap("first", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	lister := &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			second := int64(1) // so that the server ends the watch meanwhile
			options.TimeoutSeconds = &second
			return client.Watch(ctx, options)
		},
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, made.ResourceVersion, lister)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for _, name := range []string{"second", "third"} {
		ended, err := client.Watch(ctx, metav1.ListOptions{TimeoutSeconds: new(int64(1))})
		if err != nil {
			return err
		}
		for range ended.ResultChan() { // as long as the other watch lasts
		}
		if _, err := client.Create(ctx, configMap(name, nil), metav1.CreateOptions{}); err != nil {
			return err
		}
		events, err := take(ctx, watcher, 1)
		if err != nil {
			return err
		}
		if err := same("the name", events[0].Object.(*corev1.ConfigMap).Name, name); err != nil {
			return err
		}
	}
	return nil
}

// writeLife makes a ConfigMap, changes it and deletes it.
func writeLife(ctx context.Context, in *place) error {
	client := in.clients.CoreV1().ConfigMaps(in.namespace)
	made, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data = map[string]string{"k": "v"}
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return client.Delete(ctx, "a", metav1.DeleteOptions{})
}

func take(ctx context.Context, watcher watch.Interface, count int) ([]watch.Event, error) {
	var taken []watch.Event
	for range count {
		event, err := next(ctx, fmt.Sprintf("event %d", len(taken)+1), watcher.ResultChan())
		if err != nil {
			return nil, err
		}
		taken = append(taken, event)
	}
	return taken, nil
}

func kinds(events []watch.Event) []watch.EventType {
	var kinds []watch.EventType
	for _, event := range events {
		kinds = append(kinds, event.Type)
	}
	return kinds
}
