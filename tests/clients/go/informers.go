package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var informerChecks = []check{
	{"informer-follows", checkInformerFollows},
	{"informer-resumes-a-broken-watch", checkInformerResumes},
	{"informer-lists-again-when-it-is-too-late", checkInformerRelists},
}

func checkInformerFollows(ctx context.Context, in *place) error {
	return withInformer(ctx, in, func(line *line, told <-chan string, lister listing) error {
		if err := writeLife(ctx, in); err != nil {
			return err
		}
		for _, want := range []string{"add a", "update a", "delete a"} {
			if err := expect(ctx, "the next event", told, want); err != nil {
				return err
			}
		}
		return errors.Join(line.was(1, 0), lister.shows("first"))
	})
}

func checkInformerResumes(ctx context.Context, in *place) error {
	return withInformer(ctx, in, func(line *line, told <-chan string, lister listing) error {
		return checkCut(ctx, in, told, func() { line.cut("") }, func() error {
			return errors.Join(line.was(1, 1), lister.shows("first", "before", "after"))
		})
	})
}

// checkInformerRelists lets the informer ask for a version that the server has forgotten.
func checkInformerRelists(ctx context.Context, in *place) error {
	return withInformer(ctx, in, func(line *line, told <-chan string, lister listing) error {
		return checkCut(ctx, in, told, func() { line.cut("1") }, func() error {
			return errors.Join(line.was(2, 1), lister.shows("first", "before", "after"))
		})
	})
}

// checkCut writes before and after the line is cut. A watch that saw nothing would not be resumed but listed again.
func checkCut(ctx context.Context, in *place, told <-chan string, cut func(), then func() error) error {
	client := in.clients.CoreV1().ConfigMaps(in.namespace)
	if _, err := client.Create(ctx, configMap("before", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := expect(ctx, "what was written before", told, "add before"); err != nil {
		return err
	}
	cut()
	if _, err := client.Create(ctx, configMap("after", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	for {
		event, err := next(ctx, "what was written after", told)
		if err != nil {
			return err
		}
		if event == "add after" {
			return then()
		}
		if !strings.HasPrefix(event, "update") { // which a list may tell of again
			return fmt.Errorf("was told: %s", event)
		}
	}
}

// withInformer runs an informer that has seen one ConfigMap, `first`.
func withInformer(ctx context.Context, in *place, then func(*line, <-chan string, listing) error) error {
	_, err := in.clients.CoreV1().ConfigMaps(in.namespace).Create(ctx, configMap("first", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	line := &line{}
	config := rest.CopyConfig(in.config)
	config.Wrap(line.wrap)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(in.namespace))
	defer factory.Shutdown()
	defer cancel()
	maps := factory.Core().V1().ConfigMaps()
	told := make(chan string, 100)
	if _, err := maps.Informer().AddEventHandler(teller(told)); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced) {
		return errors.New("the informer never had a first list")
	}
	if err := expect(ctx, "the first event", told, "add first"); err != nil {
		return err
	}
	list := func() ([]*corev1.ConfigMap, error) { return maps.Lister().List(labels.Everything()) }
	return then(line, told, list)
}

func teller(told chan<- string) cache.ResourceEventHandlerFuncs {
	name := func(object any) string {
		key, _ := cache.DeletionHandlingObjectToName(object)
		return key.Name
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { told <- "add " + name(object) },
		UpdateFunc: func(_, object any) { told <- "update " + name(object) },
		DeleteFunc: func(object any) { told <- "delete " + name(object) },
	}
}

type listing func() ([]*corev1.ConfigMap, error)

func (list listing) shows(names ...string) error {
	maps, err := list()
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	for _, one := range maps {
		shown[one.Name] = true
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	return same("what the lister shows", shown, wanted)
}

// line is the way to the server, which can be cut, and which counts how it was used.
type line struct {
	lock        sync.Mutex
	bodies      []*body
	lists       int
	watchLists  int
	resumed     int
	nextVersion string
}

func (l *line) wrap(inner http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		answer, err := inner.RoundTrip(l.prepared(request))
		if err == nil {
			l.lock.Lock()
			defer l.lock.Unlock()
			read := &body{ReadCloser: answer.Body}
			l.bodies = append(l.bodies, read)
			answer.Body = read
		}
		return answer, err
	})
}

// prepared counts a request, and gives it another version to begin from if there is one to be given.
func (l *line) prepared(request *http.Request) *http.Request {
	l.lock.Lock()
	defer l.lock.Unlock()
	query := request.URL.Query()
	switch {
	case !query.Has("watch"):
		l.lists++
	case query.Has("sendInitialEvents"):
		l.watchLists++
	default:
		l.resumed++
		request = request.Clone(request.Context())
		request.URL.RawQuery = l.changed(query).Encode()
	}
	return request
}

func (l *line) changed(query url.Values) url.Values {
	if l.nextVersion != "" {
		query.Set("resourceVersion", l.nextVersion)
	}
	l.nextVersion = ""
	return query
}

// cut breaks all connections. The watch that is resumed then begins from a version, if one is given.
func (l *line) cut(version string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.nextVersion = version
	for _, read := range l.bodies {
		read.isCut.Store(true)
		read.Close()
	}
}

// body ends as that of a lost connection when it is cut: the error of a body that its reader has closed makes client-go list again.
type body struct {
	io.ReadCloser
	isCut atomic.Bool
}

func (b *body) Read(data []byte) (int, error) {
	count, err := b.ReadCloser.Read(data)
	if err != nil && b.isCut.Load() {
		err = io.ErrUnexpectedEOF
	}
	return count, err
}

// was compares how often a first state was asked for, always by a watch, and how often a watch was resumed.
func (l *line) was(watchLists, resumed int) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	return same("how often it listed, watched from the first state on, and resumed",
		[]int{l.lists, l.watchLists, l.resumed}, []int{0, watchLists, resumed})
}
