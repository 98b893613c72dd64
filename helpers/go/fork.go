package mockube

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"testing"
)

// Fork starts a copy of the cluster with a name, which goes on by itself, and stops it at the end of the test. If the test fails, what
// happened in the fork is logged. A server that makes no Forks, such as one that neither mockube up nor mockube run runs, ends the test with a
// message that says so.
func (c *Cluster) Fork(tb testing.TB, name string) *Cluster {
	tb.Helper()
	var made struct {
		Status struct {
			Kubeconfig string `json:"kubeconfig"`
		} `json:"status"`
	}
	// A fork may also be there if the answer is lost. If it is refused, another one of the name is not touched.
	isRefused := false
	tb.Cleanup(func() {
		if isRefused {
			return
		}
		if err := stopNamed(name); err != nil {
			tb.Error(err)
		}
	})
	err := c.client.do(http.MethodPost, group+"/forks", newObject("Fork", "", map[string]string{"name": name}), &made)
	var refusal *StatusError
	isRefused = errors.As(err, &refusal) && refusal.Code < http.StatusInternalServerError
	if IsNotFound(err) {
		tb.Fatal("this server offers no Forks")
	}
	must(tb, err)
	fork, err := Connect(made.Status.Kubeconfig)
	must(tb, err)
	fork.ReportFailure(tb)
	return fork
}

// stopNamed stops the cluster with a name, and deletes its folder.
func stopNamed(name string) error {
	path, err := findProgram()
	if err != nil {
		return err
	}
	if output, err := exec.Command(path, "down", "--name", name, "--delete").CombinedOutput(); err != nil {
		return fmt.Errorf("mockube down --delete --name %s: %w\n%s", name, err, output)
	}
	return nil
}
