package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

var typedChecks = []check{
	{"configmaps", checkConfigMaps},
	{"pods", checkPods},
	{"deployments", checkDeployments},
	{"leases", checkLeases},
	{"protobuf-is-spoken", checkProtobuf},
}

func checkConfigMaps(ctx context.Context, in *place) error {
	made := configMap("a", map[string]string{"k": "v"})
	made.BinaryData = map[string][]byte{"bytes": {0, 255}}
	applied := coreapply.ConfigMap("a", in.namespace).WithData(map[string]string{"applied": "yes"})
	return checkLife(ctx, in.clients.CoreV1().ConfigMaps(in.namespace), made, applied)
}

func checkPods(ctx context.Context, in *place) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	accounts := in.clients.CoreV1().ServiceAccounts(in.namespace)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: podSpec()}
	applied := coreapply.Pod("a", in.namespace).WithSpec(
		coreapply.PodSpec().WithContainers(coreapply.Container().WithName("web").WithImage("nginx:1.26")))
	pods := in.clients.CoreV1().Pods(in.namespace)
	if err := checkLife(ctx, pods, made, applied); err != nil {
		return err
	}
	return checkPodStatus(ctx, in, made)
}

func checkPodStatus(ctx context.Context, in *place, made *corev1.Pod) error {
	pods := in.clients.CoreV1().Pods(in.namespace)
	pod, err := pods.Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := same("the account", pod.Spec.ServiceAccountName, "default"); err != nil {
		return err
	}
	if err := same("the quality of service", pod.Status.QOSClass, corev1.PodQOSBestEffort); err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
	pod.Status.StartTime = &metav1.Time{Time: pod.CreationTimestamp.Time}
	changed, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return same("the status", changed.Status, pod.Status)
}

func checkDeployments(ctx context.Context, in *place) error {
	made := deployment("a")
	deployments := in.clients.AppsV1().Deployments(in.namespace)
	applied := appsapply.Deployment("a", in.namespace).WithSpec(appsapply.DeploymentSpec().WithReplicas(5))
	if err := checkLife(ctx, deployments, made, applied); err != nil {
		return err
	}
	created, err := deployments.Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	scale, err := deployments.GetScale(ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 7
	if _, err := deployments.UpdateScale(ctx, "a", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err := deployments.UpdateStatus(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a status over an old version was answered by: %v", err)
	}
	scaled, err := deployments.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return same("the replicas and the generation", []int64{int64(*scaled.Spec.Replicas), scaled.Generation}, []int64{7, 2})
}

func checkLeases(ctx context.Context, in *place) error {
	applied := coordinationapply.Lease("a", in.namespace).
		WithSpec(coordinationapply.LeaseSpec().WithHolderIdentity("applier"))
	return checkLife(ctx, in.clients.CoordinationV1().Leases(in.namespace), lease("a"), applied)
}

// typedClient is what the clients of all kinds have in common.
type typedClient[T metav1.Object, L runtime.Object, A any] interface {
	Create(ctx context.Context, made T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, changed T, options metav1.UpdateOptions) (T, error)
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Apply(ctx context.Context, applied A, options metav1.ApplyOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// checkLife leads an object from its creation to its deletion.
func checkLife[T metav1.Object, L runtime.Object, A any](ctx context.Context, client typedClient[T, L, A], made T, applied A) error {
	created, err := client.Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	_, err = client.Create(ctx, made, metav1.CreateOptions{})
	if err := refused("a second creation", err, apierrors.IsAlreadyExists); err != nil {
		return err
	}
	if err := checkRead(ctx, client, created); err != nil {
		return err
	}
	if err := checkUpdate(ctx, client, created); err != nil {
		return err
	}
	if err := checkPatches(ctx, client, made.GetName()); err != nil {
		return err
	}
	if err := checkApply(ctx, client, applied); err != nil {
		return err
	}
	return checkDelete(ctx, client, created)
}

func checkRead[T metav1.Object, L runtime.Object, A any](ctx context.Context, client typedClient[T, L, A], created T) error {
	got, err := client.Get(ctx, created.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if err := same("what was read", got, created); err != nil {
		return err
	}
	listed, err := client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + created.GetName()})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	items, err := meta.ExtractList(listed)
	if err != nil || len(items) != 1 {
		return fmt.Errorf("listed %d items, error %v", len(items), err)
	}
	return same("what was listed", items[0], any(created).(runtime.Object))
}

func checkUpdate[T metav1.Object, L runtime.Object, A any](ctx context.Context, client typedClient[T, L, A], created T) error {
	old := created.GetResourceVersion()
	created.SetLabels(map[string]string{"colour": "red"})
	updated, err := client.Update(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if err := same("the labels", updated.GetLabels(), map[string]string{"colour": "red"}); err != nil {
		return err
	}
	created.SetResourceVersion(old)
	_, err = client.Update(ctx, created, metav1.UpdateOptions{})
	return refused("an update of an old version", err, apierrors.IsConflict)
}

var patches = []struct {
	kind          types.PatchType
	patch, colour string
}{
	{types.JSONPatchType, `[{"op": "replace", "path": "/metadata/labels/colour", "value": "blue"}]`, "blue"},
	{types.MergePatchType, `{"metadata": {"labels": {"colour": "green"}}}`, "green"},
	{types.StrategicMergePatchType, `{"metadata": {"labels": {"colour": "grey"}}}`, "grey"},
}

func checkPatches[T metav1.Object, L runtime.Object, A any](ctx context.Context, client typedClient[T, L, A], name string) error {
	for _, row := range patches {
		patched, err := client.Patch(ctx, name, row.kind, []byte(row.patch), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", row.kind, err)
		}
		if err := same(string(row.kind), patched.GetLabels()["colour"], row.colour); err != nil {
			return err
		}
	}
	return nil
}

func checkApply[T metav1.Object, L runtime.Object, A any](ctx context.Context, client typedClient[T, L, A], applied A) error {
	got, err := client.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "applier", Force: true})
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for _, entry := range got.GetManagedFields() {
		if entry.Manager == "applier" && entry.Operation == metav1.ManagedFieldsOperationApply {
			return nil
		}
	}
	return fmt.Errorf("the applier manages nothing: %v", got.GetManagedFields())
}

func checkDelete[T metav1.Object, L runtime.Object, A any](ctx context.Context, client typedClient[T, L, A], created T) error {
	wrong := types.UID("another")
	name := created.GetName()
	err := client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	if err := refused("the deletion of another object", err, apierrors.IsConflict); err != nil {
		return err
	}
	if err := client.Delete(ctx, name, *metav1.NewDeleteOptions(0)); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	_, err = client.Get(ctx, name, metav1.GetOptions{})
	return refused("a read of what is deleted", err, apierrors.IsNotFound)
}

// checkProtobuf looks at what goes over the wire when nobody configured anything.
func checkProtobuf(ctx context.Context, in *place) error {
	recorder := &mediaTypes{}
	config := rest.CopyConfig(in.config)
	config.Wrap(recorder.wrap)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().ConfigMaps(in.namespace).Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return same("the media types of request and answer", recorder.seen, []string{protobuf, protobuf})
}

// mediaTypes notes what bodies are sent as.
type mediaTypes struct {
	lock sync.Mutex
	seen []string
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

func (m *mediaTypes) wrap(inner http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		answer, err := inner.RoundTrip(request)
		if err == nil {
			m.lock.Lock()
			defer m.lock.Unlock()
			m.seen = append(m.seen, request.Header.Get("Content-Type"), answer.Header.Get("Content-Type"))
		}
		return answer, err
	})
}
