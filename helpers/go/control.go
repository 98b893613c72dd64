package mockube

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	controlGroup = "control.mockube.dev"
	apiVersion   = controlGroup + "/v1alpha1"
	group        = "/apis/" + apiVersion
)

// Metadata is the metadata of an object of the group.
type Metadata struct {
	Name            string `json:"name,omitempty"`
	GenerateName    string `json:"generateName,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// An object is what is sent to create an object of the group.
type object struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       any      `json:"spec"`
}

func newObject(kind, name string, spec any) object {
	return object{APIVersion: apiVersion, Kind: kind, Metadata: Metadata{Name: name}, Spec: spec}
}

type list[T any] struct {
	Metadata Metadata `json:"metadata"`
	Items    []T      `json:"items"`
	// isCut is whether there are older ones than a list has.
	isCut bool
}

// find returns the objects of a resource that meet the field selectors, such as user=jane or code!=200.
func find[T any](c *Cluster, resource string, selectors []string) (list[T], error) {
	var found list[T]
	path := group + "/" + resource
	if len(selectors) > 0 {
		path += "?fieldSelector=" + url.QueryEscape(strings.Join(selectors, ","))
	}
	header, err := c.client.send(http.MethodGet, path, nil, &found)
	for _, warning := range header.Values("Warning") {
		found.isCut = found.isCut || strings.Contains(warning, "older changes are left out")
	}
	return found, err
}

// --- faults

// A FaultSpec says which requests get a fault, how many of them, and what happens to them.
type FaultSpec struct {
	Match Match `json:"match"`
	// Skip is the number of matching requests that are skipped first.
	Skip int `json:"skip,omitempty"`
	// Times is the number of requests that get the fault; all of them if it is 0.
	Times int `json:"times,omitempty"`
	// Share is the probability of each matching request; 1 if it is 0.
	Share float64 `json:"share,omitempty"`

	Delay   *Delay   `json:"delay,omitempty"`
	Cut     *Cut     `json:"cut,omitempty"`
	Refuse  *Refuse  `json:"refuse,omitempty"`
	Repeat  *Repeat  `json:"repeat,omitempty"`
	Steal   *Steal   `json:"steal,omitempty"`
	Stale   *Stale   `json:"stale,omitempty"`
	Hold    *Hold    `json:"hold,omitempty"`
	Drop    *Drop    `json:"drop,omitempty"`
	Respond *Respond `json:"respond,omitempty"`
	Change  *Patch   `json:"change,omitempty"`
	// Partition cuts the simulated node off that Match.Node names. It has no other criteria, counts and effects.
	Partition *Partition `json:"partition,omitempty"`
}

// A Match has criteria that all have to be met. Without a user, requests of mockube's own controllers do not match. Texts are
// patterns, in which * stands for any characters and ? for one.
type Match struct {
	User string `json:"user,omitempty"`
	// Agent is the beginning of the User-Agent.
	Agent string   `json:"agent,omitempty"`
	Verbs []string `json:"verbs,omitempty"`
	// Resource is the resource as in a rule of RBAC: pods, pods/status, deployments.apps.
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Labels is a label selector of the object that the request names.
	Labels string `json:"labels,omitempty"`
	// Node is the node to which the named object belongs: the node itself, its Lease, or a pod on it.
	Node string `json:"node,omitempty"`
	// Path is the path of the URL, for requests that are for no resource.
	Path string `json:"path,omitempty"`
}

// Delay lets requests wait, by the cluster's clock.
type Delay struct {
	Seconds float64 `json:"seconds"`
}

// Cut cuts the connection, before or after the request is executed.
type Cut struct {
	// When is before or after.
	When string `json:"when"`
}

// Refuse returns an error, and does not execute the request. The reason and the message are those of kube-apiserver by default.
type Refuse struct {
	Status     int    `json:"status"`
	Reason     string `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
}

// Repeat executes the request twice, as if its client had sent it again.
type Repeat struct{}

// Steal lets another candidate take the Lease that the request is for.
type Steal struct {
	Holder  string `json:"holder,omitempty"`
	Seconds int    `json:"seconds,omitempty"`
}

// Stale lets gets and lists read the store as it was at a revision, or some seconds ago; at the newest revision of now if both are 0.
type Stale struct {
	Revision int64   `json:"revision,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
}

// FromEvent selects the event of a watch with which an effect begins, after the first Skip events that match.
type FromEvent struct {
	Types     []string `json:"types,omitempty"`
	Namespace *string  `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	Skip      int      `json:"skip,omitempty"`
}

// Hold holds the events of watches back: for a time, until the user of the watch has written, or until the fault is removed.
type Hold struct {
	Seconds    float64    `json:"seconds,omitempty"`
	UntilWrite bool       `json:"untilWrite,omitempty"`
	FromEvent  *FromEvent `json:"fromEvent,omitempty"`
}

// Drop loses the changes of objects for watches: for a time, until the user of the watch has written, or until the fault is removed.
type Drop struct {
	Seconds    float64    `json:"seconds,omitempty"`
	UntilWrite bool       `json:"untilWrite,omitempty"`
	FromEvent  *FromEvent `json:"fromEvent,omitempty"`
}

// Respond returns a response, and does not execute the request.
type Respond struct {
	Status int `json:"status,omitempty"`
	Body   any `json:"body"`
}

// Patch changes the response of a request that is executed.
type Patch struct {
	MergePatch any `json:"mergePatch"`
}

// Partition cuts a node off: it sends nothing, and its pods do not change.
type Partition struct{}

// A Fault is a rule that harms requests.
type Fault struct {
	// Name is the name of the object, which Requests that got the fault have, too.
	Name string

	cluster *Cluster
}

// Fault creates a fault, and removes it at the end of the test.
func (c *Cluster) Fault(tb testing.TB, spec FaultSpec) *Fault {
	tb.Helper()
	posted := newObject("Fault", "", spec)
	posted.Metadata.GenerateName = "fault-"
	var created struct {
		Metadata Metadata `json:"metadata"`
	}
	must(tb, c.client.do(http.MethodPost, group+"/faults", posted, &created))
	fault := &Fault{Name: created.Metadata.Name, cluster: c}
	tb.Cleanup(func() { fault.Remove(tb) })
	return fault
}

func (f *Fault) path() string { return group + "/faults/" + f.Name }

// Hits returns the number of requests that got the fault.
func (f *Fault) Hits(tb testing.TB) int {
	tb.Helper()
	var got struct {
		Status struct {
			Hits int `json:"hits"`
		} `json:"status"`
	}
	must(tb, f.cluster.client.do(http.MethodGet, f.path(), nil, &got))
	return got.Status.Hits
}

// Remove ends the fault; requests that it delays continue.
func (f *Fault) Remove(tb testing.TB) {
	tb.Helper()
	if err := f.cluster.client.do(http.MethodDelete, f.path(), nil, nil); !IsNotFound(err) {
		must(tb, err)
	}
}

// --- what happened

// A Request is a request that was sent to the server.
type Request struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Time        time.Time `json:"time"`
		User        string    `json:"user"`
		Agent       string    `json:"agent"`
		Verb        string    `json:"verb"`
		Group       string    `json:"group"`
		Version     string    `json:"version"`
		Resource    string    `json:"resource"`
		Subresource string    `json:"subresource"`
		Namespace   string    `json:"namespace"`
		Name        string    `json:"name"`
		URI         string    `json:"uri"`
		AuditID     string    `json:"auditID"`
		Bytes       int64     `json:"bytes"`
	} `json:"spec"`
	// Status is empty while the request is in progress, but for watches, which have a code as soon as they begin.
	Status struct {
		Code     int     `json:"code"`
		Seconds  float64 `json:"seconds"`
		Bytes    int64   `json:"bytes"`
		Revision int64   `json:"revision"`
		Fault    string  `json:"fault"`
		// IsCut is whether that Fault cut the connection; in place of a response, if there is no code.
		IsCut bool `json:"isCut"`
	} `json:"status"`
}

// Requests returns the requests that meet the field selectors, such as verb=update, code=409 or user!=jane; the oldest first. Those by
// which this package does its own work are left out; those of Do are not.
func (c *Cluster) Requests(tb testing.TB, selectors ...string) []Request {
	tb.Helper()
	found, err := find[Request](c, "requests", selectors)
	must(tb, err)
	return slices.DeleteFunc(found.Items, isOwn)
}

// isOwn returns whether a request is one by which this package does its work.
func isOwn(request Request) bool {
	spec := request.Spec
	return spec.Agent == agent && (spec.Group == controlGroup || strings.HasPrefix(spec.URI, "/mockube/"))
}

// A Change is a write to the store.
type Change struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Revision int64 `json:"revision"`
		// Time is zero if another server wrote it.
		Time time.Time `json:"time"`
		// Type is ADDED, MODIFIED or DELETED.
		Type   string `json:"type"`
		Object struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Resource   string `json:"resource"`
			Namespace  string `json:"namespace"`
			Name       string `json:"name"`
			UID        string `json:"uid"`
		} `json:"object"`
		// Author is empty if another server wrote it, or if it is too long ago.
		Author struct {
			User        string `json:"user"`
			Agent       string `json:"agent"`
			Manager     string `json:"manager"`
			Verb        string `json:"verb"`
			Subresource string `json:"subresource"`
			AuditID     string `json:"auditID"`
		} `json:"author"`
		// Patch is the JSON patch against the version before.
		Patch []Operation `json:"patch"`
		// PatchOmitted is why there is no patch, such as that it is too large.
		PatchOmitted string `json:"patchOmitted"`
	} `json:"spec"`
}

// An Operation is one of a JSON patch.
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Changes returns the changes that meet the field selectors, such as kind=Deployment, name=web or manager=kubectl; the oldest first.
func (c *Cluster) Changes(tb testing.TB, selectors ...string) []Change {
	tb.Helper()
	found, err := find[Change](c, "changes", selectors)
	must(tb, err)
	return found.Items
}

// A Mark is a name for a revision of the store.
type Mark struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Revision int64 `json:"revision"`
	} `json:"spec"`

	cluster *Cluster
}

// Mark names the newest revision.
func (c *Cluster) Mark(tb testing.TB, name string) *Mark {
	tb.Helper()
	mark := &Mark{cluster: c}
	must(tb, c.client.do(http.MethodPost, group+"/marks", newObject("Mark", name, struct{}{}), mark))
	return mark
}

// Changes returns the changes after the mark that meet the field selectors. It fails if the history of the server begins later, and if
// there are more than a list has.
func (m *Mark) Changes(tb testing.TB, selectors ...string) []Change {
	tb.Helper()
	must(tb, m.cluster.client.do(http.MethodGet, "/mockube/at/"+m.Metadata.Name+"/version", nil, nil))
	found, err := find[Change](m.cluster, "changes", selectors)
	must(tb, err)
	changes := changesAfter(found.Items, m.Spec.Revision)
	if found.isCut && len(changes) == len(found.Items) {
		tb.Fatalf("the list of changes does not reach back to the mark %s: select a kind, a namespace and a name", m.Metadata.Name)
	}
	return changes
}

func changesAfter(changes []Change, revision int64) []Change {
	for index, change := range changes {
		if change.Spec.Revision > revision {
			return changes[index:]
		}
	}
	return nil
}

// Rewind makes the objects of a moment the newest ones: the name of a mark, a revision, a time, or a span before now such as -5m.
func (c *Cluster) Rewind(tb testing.TB, moment string) {
	tb.Helper()
	spec := map[string]string{"to": moment}
	must(tb, c.client.do(http.MethodPost, group+"/rewinds", newObject("Rewind", "", spec), nil))
}

// --- time

const (
	clockPath   = group + "/clocks/cluster"
	advancePath = clockPath + "/advance"
)

type clockStatus struct {
	Status struct {
		Time time.Time `json:"time"`
	} `json:"status"`
}

// Now returns the time of the cluster.
func (c *Cluster) Now(tb testing.TB) time.Time {
	tb.Helper()
	var got clockStatus
	must(tb, c.client.do(http.MethodGet, clockPath, nil, &got))
	return got.Status.Time
}

// Advance advances the clock of the cluster, and returns its time when everything has happened that was due by then.
func (c *Cluster) Advance(tb testing.TB, by time.Duration) time.Time {
	tb.Helper()
	spec := map[string]float64{"seconds": by.Seconds()}
	var done clockStatus
	must(tb, c.client.do(http.MethodPost, advancePath, newObject("ClockAdvance", "", spec), &done))
	return done.Status.Time
}

// Pause lets the time of the cluster stand still. It can still be advanced.
func (c *Cluster) Pause(tb testing.TB) {
	tb.Helper()
	c.setClock(tb, map[string]any{"paused": true})
}

// Resume lets the time of the cluster pass again.
func (c *Cluster) Resume(tb testing.TB) {
	tb.Helper()
	c.setClock(tb, map[string]any{"paused": false})
}

// SetRate lets so many seconds of the cluster pass in a second of the machine.
func (c *Cluster) SetRate(tb testing.TB, rate float64) {
	tb.Helper()
	c.setClock(tb, map[string]any{"rate": rate})
}

func (c *Cluster) setClock(tb testing.TB, spec map[string]any) {
	tb.Helper()
	must(tb, c.client.do(http.MethodPatch, clockPath, map[string]any{"spec": spec}, nil))
}
