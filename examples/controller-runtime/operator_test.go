package shop

import (
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"mockube.dev/mockube"
)

// agent is the User-Agent of the operator, by which faults and requests select it.
const agent = "shop-operator"

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(m.Run())
}

// start runs the operator in a cluster until the end of the test, and returns a client of the test.
func start(t *testing.T, cluster *mockube.Cluster) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = agent
	isSharedName := true // each test has an operator of its own, in one process
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Controller: controllerconfig.Controller{SkipNameValidation: &isSharedName},
		Metrics:    server.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Reconciler{manager.GetClient()}).SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return direct
}

func openShop(t *testing.T, c client.Client) *corev1.ConfigMap {
	t.Helper()
	shop := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "books", Namespace: "default", Labels: map[string]string{"shop": "open"}},
		Data:       map[string]string{"image": "nginx"},
	}
	if err := c.Create(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	return shop
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func waitAvailable(t *testing.T, c client.Client) {
	t.Helper()
	eventually(t, "an available Deployment", func(ctx context.Context) (bool, error) {
		var deployment appsv1.Deployment
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "books"}, &deployment)
		return deployment.Status.AvailableReplicas == 1, client.IgnoreNotFound(err)
	})
}

func TestShopOpensAlthoughTheServerIsBusy(t *testing.T) {
	cluster := mockube.Start(t, "--nodes=1")
	busy := cluster.Fault(t, mockube.FaultSpec{
		Match:  mockube.Match{Agent: agent, Resource: "deployments", Verbs: []string{"create"}},
		Refuse: &mockube.Refuse{Status: http.StatusServiceUnavailable},
		Times:  3,
	})
	c := start(t, cluster)
	openShop(t, c)
	waitAvailable(t, c)
	if hits := busy.Hits(t); hits != 3 {
		t.Errorf("%d requests were refused", hits)
	}
}

func TestOperatorIsIdleWhenNothingChanges(t *testing.T) {
	cluster := mockube.Start(t, "--nodes=1")
	c := start(t, cluster)
	openShop(t, c)
	waitAvailable(t, c)
	settled := cluster.Mark(t, "settled")
	cluster.Advance(t, 5*time.Minute)
	if changes := settled.Changes(t, "kind=Deployment"); len(changes) != 0 {
		t.Errorf("the Deployment was written %d times", len(changes))
	}
	for _, verb := range []string{"update", "patch"} {
		if sent := cluster.Requests(t, "agent="+agent, "verb="+verb); len(sent) != 0 {
			t.Errorf("%d requests to %s, the first for %s", len(sent), verb, sent[0].Spec.URI)
		}
	}
}

func TestChangeOfTheImageIsMadeByTheOperator(t *testing.T) {
	cluster := mockube.Start(t, "--nodes=1")
	c := start(t, cluster)
	shop := openShop(t, c)
	waitAvailable(t, c)
	before := cluster.Mark(t, "before")
	shop.Data["image"] = "nginx:2"
	if err := c.Update(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	var changes []mockube.Change
	eventually(t, "a new image", func(context.Context) (bool, error) {
		changes = before.Changes(t, "kind=Deployment", "name=books")
		return len(changes) > 0, nil
	})
	first := changes[0].Spec
	if first.Author.Agent != agent || len(first.Patch) == 0 {
		t.Errorf("the first change is by %s: %s", first.Author.Agent, first.Patch)
	}
}
