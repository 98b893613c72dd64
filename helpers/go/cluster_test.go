package mockube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// shared is a cluster for all tests but those that start one.
var shared *Cluster

func TestMain(m *testing.M) {
	var err error
	if shared, err = New("--nodes=1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type configMap struct {
	Metadata Metadata          `json:"metadata"`
	Data     map[string]string `json:"data,omitempty"`
}

func create(name string) error {
	return shared.Do(http.MethodPost, configMaps, configMap{Metadata: Metadata{Name: name}}, nil)
}

func mustCreate(t *testing.T, name string) {
	t.Helper()
	if err := create(name); err != nil {
		t.Fatal(err)
	}
}

func TestFaultRefusesRequestsAndCountsThem(t *testing.T) {
	fault := shared.Fault(t, FaultSpec{
		Match:  Match{Resource: "configmaps", Verbs: []string{"create"}},
		Refuse: &Refuse{Status: http.StatusServiceUnavailable},
		Times:  1,
	})
	var failure *StatusError
	if err := create("refused"); !errors.As(err, &failure) || failure.Code != http.StatusServiceUnavailable || failure.Reason != "ServiceUnavailable" {
		t.Fatalf("the first request: %v", err)
	}
	mustCreate(t, "refused")
	if hits := fault.Hits(t); hits != 1 {
		t.Errorf("%d hits", hits)
	}
	refused := shared.Requests(t, "fault="+fault.Name)
	if len(refused) != 1 || refused[0].Spec.Verb != "create" || refused[0].Status.Code != http.StatusServiceUnavailable {
		t.Errorf("requests that got the fault: %+v", refused)
	}
}

func TestMisspeltSelectorsAreErrors(t *testing.T) {
	for resource, selector := range map[string]string{"requests": "verb=updat", "changes": "kind=Podd"} {
		_, err := find[Request](shared, resource, []string{selector})
		if err == nil || !strings.Contains(err.Error(), `did you mean "`) {
			t.Errorf("%s of %s: %v", selector, resource, err)
		}
	}
}

func TestFaultEndsWithTheTest(t *testing.T) {
	spec := FaultSpec{Match: Match{Path: "/version"}, Cut: &Cut{When: "before"}}
	t.Run("with a fault", func(t *testing.T) {
		shared.Fault(t, spec)
		if shared.Do(http.MethodGet, "/version", nil, nil) == nil {
			t.Error("the connection was not cut")
		}
	})
	if err := shared.Do(http.MethodGet, "/version", nil, nil); err != nil {
		t.Error(err)
	}
}

func TestFaultThatIsMisspeltEndsTheTest(t *testing.T) {
	log := &recorder{TB: t}
	log.run(func() {
		shared.Fault(log, FaultSpec{Match: Match{Resource: "pod"}, Cut: &Cut{When: "before"}})
	})
	if !log.failed || !strings.Contains(log.text(), `did you mean "pods"?`) {
		t.Error(log.text())
	}
}

func TestChangesAfterAMarkHaveTheirPatches(t *testing.T) {
	mustCreate(t, "colors")
	mark := shared.Mark(t, "before-colors")
	patch := map[string]any{"data": map[string]string{"color": "red"}}
	if err := shared.Do(http.MethodPatch, configMaps+"/colors", patch, nil); err != nil {
		t.Fatal(err)
	}
	selectors := []string{"kind=ConfigMap", "namespace=default", "name=colors"}
	if all := shared.Changes(t, selectors...); len(all) != 2 || all[0].Spec.Type != "ADDED" {
		t.Errorf("all changes: %+v", all)
	}
	changes := mark.Changes(t, selectors...)
	if len(changes) != 1 || changes[0].Spec.Patch[0].Path != "/data" || changes[0].Spec.Author.Agent != agent {
		t.Errorf("changes after the mark: %+v", changes)
	}
}

func TestChangesAfterAMarkOutliveAnAdvance(t *testing.T) {
	mark := shared.Mark(t, "before-the-advance")
	mustCreate(t, "early")
	shared.Advance(t, 15*time.Minute) // compaction keeps ten
	if changes := mark.Changes(t, "kind=ConfigMap", "name=early"); len(changes) != 1 {
		t.Errorf("changes after the mark: %+v", changes)
	}
}

func TestRequestsAreNotThoseOfTheHelperItself(t *testing.T) {
	shared.Mark(t, "own").Changes(t, "kind=ConfigMap")
	mustCreate(t, "seen")
	requests := shared.Requests(t, "user=kubernetes-admin")
	for _, request := range requests {
		if request.Spec.Group == controlGroup || strings.HasPrefix(request.Spec.URI, "/mockube/") {
			t.Errorf("a request: %+v", request.Spec)
		}
	}
	if last := requests[len(requests)-1]; last.Spec.Verb != "create" || last.Spec.Resource != "configmaps" {
		t.Errorf("the last request: %+v", last.Spec)
	}
}

func TestRewindBringsObjectsBack(t *testing.T) {
	mustCreate(t, "kept")
	mark := shared.Mark(t, "with-kept")
	if err := shared.Do(http.MethodDelete, configMaps+"/kept", nil, nil); err != nil {
		t.Fatal(err)
	}
	shared.Rewind(t, mark.Metadata.Name)
	if err := shared.Do(http.MethodGet, configMaps+"/kept", nil, nil); err != nil {
		t.Error(err)
	}
}

func TestRequestThatIsHeldEnds(t *testing.T) {
	shared.Fault(t, FaultSpec{Match: Match{Path: "/version"}, Delay: &Delay{Seconds: 600}})
	impatient := *shared.client
	impatient.time = 200 * time.Millisecond
	if err := impatient.do(http.MethodGet, "/version", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request ended with %v", err)
	}
}

func TestForkGoesOnByItself(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("clusters can be forked on Linux only")
	}
	t.Run("with a fork", func(t *testing.T) {
		fork := shared.Fork(t, fmt.Sprintf("go-helper-%d", os.Getpid()))
		must(t, fork.Do(http.MethodPost, configMaps, configMap{Metadata: Metadata{Name: "only-in-the-fork"}}, nil))
		if err := shared.Do(http.MethodGet, configMaps+"/only-in-the-fork", nil, nil); !IsNotFound(err) {
			t.Errorf("the cluster has what was created in the fork: %v", err)
		}
	})
}

func TestForkThatIsRefusedEndsTheTest(t *testing.T) {
	log := &recorder{TB: t}
	log.run(func() { shared.Fork(log, "Not-A-Name") })
	if !log.failed || !strings.Contains(log.text(), "Not-A-Name") {
		t.Error(log.text())
	}
}

func TestClockStandsStillAndIsAdvanced(t *testing.T) {
	shared.Pause(t)
	t.Cleanup(func() { shared.Resume(t) })
	before := shared.Now(t)
	after := shared.Advance(t, time.Minute)
	if passed := after.Sub(before); passed != time.Minute {
		t.Errorf("%v have passed", passed)
	}
	if now := shared.Now(t); !now.Equal(after) {
		t.Errorf("the time is %v, and not %v", now, after)
	}
}

func TestClockRunsFaster(t *testing.T) {
	shared.SetRate(t, 100)
	t.Cleanup(func() { shared.SetRate(t, 1) })
	began, before := time.Now(), shared.Now(t)
	for shared.Now(t).Sub(before) < time.Minute {
		if time.Since(began) > 30*time.Second {
			t.Fatal("no minute has passed")
		}
	}
}

func TestFailedTestLogsWhatHappenedSinceItsStart(t *testing.T) {
	mustCreate(t, "earlier")
	log := &recorder{TB: t}
	log.run(func() {
		shared.ReportFailure(log)
		mustCreate(t, "later")
		must(t, shared.Do(http.MethodPost, "/api/v1/namespaces/default/events", map[string]any{
			"metadata":       Metadata{Name: "late"},
			"type":           "Warning",
			"reason":         "Late",
			"message":        "it is late",
			"involvedObject": map[string]string{"kind": "ConfigMap", "namespace": "default", "name": "later"},
		}, nil))
		log.Error("the test fails")
	})
	text := log.text()
	for _, line := range []string{
		" 201 create " + configMaps + " (kubernetes-admin, mockube-helper-go)",
		"Warning Late ConfigMap default/later: it is late",
		" ADDED ConfigMap default/later (kubernetes-admin, ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in the report:\n%s", line, text)
		}
	}
	for _, words := range []string{"earlier", "kube-controller-manager)", "control.mockube.dev"} {
		if strings.Contains(text, words) {
			t.Errorf("%q is in the report:\n%s", words, text)
		}
	}
}

func TestTestThatPassesLogsNothing(t *testing.T) {
	log := &recorder{TB: t}
	log.run(func() { shared.ReportFailure(log) })
	if text := log.text(); text != "" {
		t.Error(text)
	}
}

func TestClusterEndsWithItsTest(t *testing.T) {
	var kubeconfig string
	t.Run("with a cluster of its own", func(t *testing.T) {
		cluster := Start(t, "--nodes=0")
		kubeconfig = cluster.Kubeconfig
		var nodes struct{ Items []any }
		if err := cluster.Do(http.MethodGet, "/api/v1/nodes", nil, &nodes); err != nil || len(nodes.Items) != 0 {
			t.Errorf("%d nodes, %v", len(nodes.Items), err)
		}
	})
	if _, err := os.Stat(kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster is still there: %v", err)
	}
}

func TestFlagThatDoesNotExistIsReported(t *testing.T) {
	if _, err := New("--no-such-flag"); err == nil || !strings.Contains(err.Error(), "--no-such-flag") {
		t.Error(err)
	}
}

func TestMissingProgramIsReported(t *testing.T) {
	t.Setenv("MOCKUBE", "/no/such/program")
	if _, err := New(); err == nil || !strings.Contains(err.Error(), "MOCKUBE") {
		t.Error(err)
	}
}

func TestEmptyPathOfAKubeconfigIsRefused(t *testing.T) {
	if _, err := Connect(""); err == nil || !strings.Contains(err.Error(), "is KUBECONFIG set?") {
		t.Fatal(err)
	}
}

func TestKubeconfigOfAnotherProgramIsRefused(t *testing.T) {
	path := t.TempDir() + "/kubeconfig"
	must(t, os.WriteFile(path, []byte("server: https://127.0.0.1\n"), 0o600))
	if _, err := Connect(path); err == nil || !strings.Contains(err.Error(), "certificate-authority-data") {
		t.Error(err)
	}
}

// A recorder is a test within a test, which records what is logged and may fail.
type recorder struct {
	testing.TB
	lines    []string
	cleanups []func()
	failed   bool
}

func (r *recorder) Helper() {}

func (r *recorder) Log(arguments ...any) { r.lines = append(r.lines, fmt.Sprint(arguments...)) }

func (r *recorder) Error(arguments ...any) { r.Log(arguments...); r.failed = true }

func (r *recorder) Fatal(arguments ...any) { r.Error(arguments...); panic(r) }

func (r *recorder) Failed() bool { return r.failed }

func (r *recorder) Cleanup(do func()) { r.cleanups = append(r.cleanups, do) }

func (r *recorder) text() string { return strings.Join(r.lines, "\n") }

// run runs the test and its cleanups.
func (r *recorder) run(test func()) {
	defer func() {
		if problem := recover(); problem != nil && problem != any(r) {
			panic(problem)
		}
		for index := len(r.cleanups) - 1; index >= 0; index-- {
			r.cleanups[index]()
		}
	}()
	test()
}

func TestChangeWithoutPatchTimeAndAuthorHasALine(t *testing.T) {
	var change Change
	content := `{"spec": {"revision": 7, "type": "MODIFIED", "object": {"kind": "ConfigMap", "namespace": "default", "name": "large"},
		"patchOmitted": "it is larger than 32768 bytes"}}`
	if err := json.Unmarshal([]byte(content), &change); err != nil {
		t.Fatal(err)
	}
	want := "--:--:--.--- MODIFIED ConfigMap default/large (the author is not known)\n    no patch: it is larger than 32768 bytes"
	if line := changeLine(change); line != want {
		t.Errorf("the line is %q", line)
	}
}
