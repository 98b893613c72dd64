package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var runtimeChecks = []check{
	{"controller-runtime-client", checkRuntimeClient},
	{"controller-runtime-manager", checkManager},
}

const owner = client.FieldOwner("operator")

func checkRuntimeClient(ctx context.Context, in *place) error {
	operator, err := client.New(in.config, client.Options{})
	if err != nil {
		return err
	}
	labels := map[string]string{"app": "a"}
	wanted := appsapply.Deployment("a", in.namespace).WithSpec(appsapply.DeploymentSpec().
		WithReplicas(2).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(
			coreapply.PodSpec().WithContainers(coreapply.Container().WithName("web").WithImage("nginx:1.25")))))
	if err := operator.Apply(ctx, wanted, owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	status := appsapply.Deployment("a", in.namespace).WithStatus(appsapply.DeploymentStatus().WithReplicas(2))
	if err := operator.Status().Apply(ctx, status, owner); err != nil {
		return fmt.Errorf("apply of the status: %w", err)
	}
	made := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: in.namespace, Name: "a"}
	if err := operator.Get(ctx, key, made); err != nil {
		return err
	}
	if err := same("the status", made.Status.Replicas, 2); err != nil {
		return err
	}
	if err := checkStatusIsApart(ctx, operator, made); err != nil {
		return err
	}
	if err := operator.Delete(ctx, made); err != nil {
		return err
	}
	return refused("a read of what is deleted", operator.Get(ctx, key, made), apierrors.IsNotFound)
}

// checkStatusIsApart changes spec and status at once, by both ways; each takes its own.
func checkStatusIsApart(ctx context.Context, operator client.Client, made *appsv1.Deployment) error {
	before := made.DeepCopy()
	*made.Spec.Replicas, made.Status.Replicas = 5, 5
	if err := operator.Status().Patch(ctx, made, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := same("replicas after a patch of the status", []int32{*made.Spec.Replicas, made.Status.Replicas}, []int32{2, 5}); err != nil {
		return err
	}
	*made.Spec.Replicas, made.Status.Replicas = 7, 7
	if err := operator.Update(ctx, made); err != nil {
		return err
	}
	return same("replicas after an update", []int32{*made.Spec.Replicas, made.Status.Replicas}, []int32{7, 5})
}

// checkManager runs an operator that makes a copy of each ConfigMap with a label, and makes it again.
func checkManager(ctx context.Context, in *place) error {
	log.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(in.config, ctrl.Options{
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{in.namespace: {}}},
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "copier",
		LeaderElectionNamespace: in.namespace,
	})
	if err != nil {
		return err
	}
	copier := &copier{client: manager.GetClient(), made: make(chan string, 100)}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.ConfigMap{}).Complete(copier); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	outcome := checkCopies(ctx, in, copier.made)
	cancel()
	return errors.Join(outcome, <-ended)
}

func checkCopies(ctx context.Context, in *place, made <-chan string) error {
	maps := in.clients.CoreV1().ConfigMaps(in.namespace)
	original := configMap("original", map[string]string{"k": "v"})
	original.Labels = map[string]string{"copy": "yes"}
	if _, err := maps.Create(ctx, original, metav1.CreateOptions{}); err != nil {
		return err
	}
	for range 2 {
		if err := expect(ctx, "a copy", made, "original-copy"); err != nil {
			return err
		}
		copied, err := maps.Get(ctx, "original-copy", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := same("the copy", copied.Data, original.Data); err != nil {
			return err
		}
		if err := maps.Delete(ctx, "original-copy", metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

type copier struct {
	client client.Client
	made   chan string
}

func (c *copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	original := &corev1.ConfigMap{}
	if err := c.client.Get(ctx, request.NamespacedName, original); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if original.Labels["copy"] != "yes" {
		return ctrl.Result{}, nil
	}
	copied := configMap(original.Name+"-copy", nil)
	copied.Namespace = original.Namespace
	result, err := controllerutil.CreateOrUpdate(ctx, c.client, copied, func() error {
		copied.Data = original.Data
		return controllerutil.SetControllerReference(original, copied, c.client.Scheme())
	})
	if result == controllerutil.OperationResultCreated {
		c.made <- copied.Name
	}
	return ctrl.Result{}, err
}
