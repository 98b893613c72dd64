package heal

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// A pod whose command fails is Failed soon after; field selectors and informers are the server's own.
func TestFailedPodsAreDeletedAndOthersAreNot(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client := connect(t)
	gone, failed := follow(ctx, t, client)
	run(ctx, t, client, "broken", "false")
	run(ctx, t, client, "sound", "sleep", "infinity")

	wait(ctx, t, failed, "broken")
	healed, err := Failed(ctx, client, metav1.NamespaceDefault)
	if err != nil || healed != 1 {
		t.Fatalf("healed %d pods, %v", healed, err)
	}
	wait(ctx, t, gone, "broken")
	if _, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "sound", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
}

// connect reads KUBECONFIG, which `mockube run` sets.
func connect(t *testing.T) kubernetes.Interface {
	t.Helper()
	loader := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loader, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// follow tells the names of pods that have been deleted, and of those that have failed.
func follow(ctx context.Context, t *testing.T, client kubernetes.Interface) (gone, failed chan string) {
	t.Helper()
	gone, failed = make(chan string, 10), make(chan string, 10)
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, now any) {
			if pod := now.(*corev1.Pod); pod.Status.Phase == corev1.PodFailed {
				failed <- pod.Name
			}
		},
		DeleteFunc: func(before any) {
			if pod, known := before.(*corev1.Pod); known {
				gone <- pod.Name
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), pods.HasSynced)
	return gone, failed
}

func run(ctx context.Context, t *testing.T, client kubernetes.Interface, name string, command ...string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "busybox", Command: command}},
		},
	}
	if _, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func wait(ctx context.Context, t *testing.T, names chan string, wanted string) {
	t.Helper()
	for {
		select {
		case name := <-names:
			if name == wanted {
				return
			}
		case <-ctx.Done():
			t.Fatalf("nothing came of %s", wanted)
		}
	}
}
