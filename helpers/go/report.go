package mockube

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// maxLines is the number of last lines of each section of a report.
const maxLines = 20

// controllers is the beginning of the User-Agent of mockube's own controllers.
const controllers = "kube-controller-manager"

type event struct {
	Metadata       Metadata `json:"metadata"`
	Type           string   `json:"type"`
	Reason         string   `json:"reason"`
	Message        string   `json:"message"`
	InvolvedObject struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"involvedObject"`
}

// A moment is where a report begins: the newest versions of requests, and of everything else.
type moment struct{ request, revision int64 }

// ReportFailure logs the requests, the events and the changes from now on at the end of the test, if it fails. Start does it for the
// cluster of one test; tests that share a cluster call it at their beginning.
func (c *Cluster) ReportFailure(tb testing.TB) {
	tb.Helper()
	began, err := c.now()
	must(tb, err)
	tb.Cleanup(func() {
		if tb.Failed() {
			for _, section := range c.sections(began) {
				tb.Log(section)
			}
		}
	})
}

func (c *Cluster) now() (moment, error) {
	newest := struct{ Metadata Metadata }{}
	if err := c.client.do(http.MethodGet, group+"/changes?limit=1", nil, &newest); err != nil {
		return moment{}, err
	}
	requests, err := find[Request](c, "requests", []string{"code=0"})
	return moment{version(requests.Metadata), version(newest.Metadata)}, err
}

func (c *Cluster) events() (list[event], error) {
	var found list[event]
	return found, c.client.do(http.MethodGet, "/api/v1/events", nil, &found)
}

func (c *Cluster) sections(began moment) []string {
	requests, requestErr := find[Request](c, "requests", []string{"group!=" + controlGroup})
	events, eventErr := c.events()
	changes, changeErr := find[Change](c, "changes", nil)
	var lines [3][]string
	for _, request := range requests.Items {
		if version(request.Metadata) > began.request && !strings.HasPrefix(request.Spec.Agent, controllers) {
			lines[0] = append(lines[0], requestLine(request))
		}
	}
	for _, event := range events.Items {
		if version(event.Metadata) > began.revision {
			lines[1] = append(lines[1], eventLine(event))
		}
	}
	for _, change := range changesAfter(changes.Items, began.revision) {
		if !isRoutine(change) {
			lines[2] = append(lines[2], changeLine(change))
		}
	}
	return []string{
		sectionText("requests", lines[0], requestErr),
		sectionText("events", lines[1], eventErr),
		sectionText("changes", lines[2], changeErr),
	}
}

func sectionText(title string, lines []string, err error) string {
	if err != nil {
		return fmt.Sprintf("mockube: %s: %v", title, err)
	}
	if len(lines) == 0 {
		return fmt.Sprintf("mockube: no %s", title)
	}
	if omitted := len(lines) - maxLines; omitted > 0 {
		lines = append([]string{fmt.Sprintf("... and %d before", omitted)}, lines[omitted:]...)
	}
	return fmt.Sprintf("mockube: %s\n%s", title, strings.Join(lines, "\n"))
}

func requestLine(request Request) string {
	code := "..."
	if request.Status.Code != 0 {
		code = strconv.Itoa(request.Status.Code)
	} else if request.Status.IsCut {
		code = "cut"
	}
	line := fmt.Sprintf("%s %s %s %s (%s, %s)", request.Spec.Time.Format("15:04:05.000"), code, request.Spec.Verb, request.Spec.URI,
		request.Spec.User, request.Spec.Agent)
	if request.Status.Fault != "" {
		line += " fault=" + request.Status.Fault
	}
	return line
}

func eventLine(event event) string {
	regarding := event.InvolvedObject
	return fmt.Sprintf("%s %s %s: %s", event.Type, event.Reason, reference(regarding.Kind, regarding.Namespace, regarding.Name), event.Message)
}

func changeLine(change Change) string {
	spec := change.Spec
	object := reference(spec.Object.Kind, spec.Object.Namespace, spec.Object.Name)
	written, author := "--:--:--.---", "the author is not known"
	if !spec.Time.IsZero() {
		written = spec.Time.Format("15:04:05.000")
	}
	if spec.Author.User != "" {
		author = spec.Author.User + ", " + spec.Author.Manager
	}
	line := fmt.Sprintf("%s %s %s (%s)", written, spec.Type, object, author)
	if spec.PatchOmitted != "" {
		line += "\n    no patch: " + spec.PatchOmitted
	}
	for _, operation := range spec.Patch {
		if spec.Type == "MODIFIED" && operation.Path != "" {
			line += fmt.Sprintf("\n    %s %s %s", operation.Op, operation.Path, operation.Value)
		}
	}
	return line
}

// isRoutine returns whether a change repeats in each cluster, or is an Event, which has a section of its own.
func isRoutine(change Change) bool {
	return change.Spec.Object.Kind == "Event" || change.Spec.Object.Kind == "Lease"
}

func reference(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// version returns a resource version as a number; later ones are larger.
func version(metadata Metadata) int64 {
	number, _ := strconv.ParseInt(metadata.ResourceVersion, 10, 64)
	return number
}
