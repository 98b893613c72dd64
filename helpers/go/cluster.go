// Package mockube starts Kubernetes clusters for tests, breaks their requests, advances their clocks, and reads what happened.
//
// A test starts a cluster, gives its kubeconfig to the code under test, and controls it:
//
//	func TestRetry(t *testing.T) {
//		cluster := mockube.Start(t)
//		fault := cluster.Fault(t, mockube.FaultSpec{
//			Match:  mockube.Match{Resource: "configmaps", Verbs: []string{"create"}},
//			Refuse: &mockube.Refuse{Status: 503},
//			Times:  1,
//		})
//		run(cluster.Kubeconfig)
//		if fault.Hits(t) != 1 { t.Error("the operator did not create a ConfigMap") }
//	}
//
// If the test fails, its log has the requests, the events and the changes since the start. The package needs nothing but the
// standard library and the program mockube, on the PATH or named by the environment variable MOCKUBE.
//
// Everything is an object of the API group control.mockube.dev, which kubectl describes: kubectl explain fault.spec.
package mockube

import (
	"fmt"
	"testing"
)

// A Cluster is a running cluster.
type Cluster struct {
	// Kubeconfig is the path of a kubeconfig with the rights of an administrator.
	Kubeconfig string
	// Server is the URL of the API server.
	Server string
	// CACertificate is the certificate of the cluster's authority, in PEM.
	CACertificate []byte
	// Token is the bearer token of the administrator.
	Token string

	client *client
	stop   func() error
}

// Start starts a cluster for a test, and stops it at the end of the test. If the test fails, what happened in the cluster is logged.
// The flags are those of the command mockube run, such as --nodes=1.
func Start(tb testing.TB, flags ...string) *Cluster {
	tb.Helper()
	cluster, err := New(flags...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			tb.Error(err)
		}
	})
	cluster.ReportFailure(tb)
	return cluster
}

// New starts a cluster that several tests share, as in TestMain; Stop stops it. It ends with the process of the test, too.
func New(flags ...string) (*Cluster, error) {
	process, err := startProcess(flags)
	if err != nil {
		return nil, err
	}
	cluster, err := Connect(process.kubeconfig)
	if err != nil {
		_ = process.stop()
		return nil, err
	}
	cluster.stop = process.stop
	return cluster, nil
}

// Connect returns a cluster that runs already, such as that of mockube up, by the path of the kubeconfig that mockube wrote.
func Connect(kubeconfig string) (*Cluster, error) {
	access, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := newClient(access)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	return &Cluster{
		Kubeconfig:    kubeconfig,
		Server:        access.server,
		CACertificate: access.authority,
		Token:         access.token,
		client:        client,
		stop:          func() error { return nil },
	}, nil
}

// Stop stops a cluster that New has started. A cluster that was connected keeps running.
func (c *Cluster) Stop() error {
	c.client.close()
	return c.stop()
}

// Do sends a request to the API server, such as GET /api/v1/nodes. Its body is in, and its response is decoded into out; both are
// JSON, and may be nil. The body of a PATCH is a merge patch. An error of the server is a *StatusError.
func (c *Cluster) Do(method, path string, in, out any) error {
	return c.client.do(method, path, in, out)
}

// must ends the test if a request has failed.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
