// Package shop has an operator that runs a Deployment for each ConfigMap with the label shop=open.
package shop

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Reconciler keeps the Deployment of a ConfigMap as it should be.
type Reconciler struct {
	client.Client
}

// Reconcile creates or updates the Deployment, which the ConfigMap owns. An error is tried again later.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var shop corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	labels := map[string]string{"shop": shop.Name}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: shop.Name, Namespace: shop.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
		}
		deployment.Spec.Template.Spec.Containers[0].Image = shop.Data["image"]
		return controllerutil.SetControllerReference(&shop, deployment, r.Scheme())
	})
	return ctrl.Result{}, err
}

// SetupWithManager lets a manager run the operator.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	isOpen, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"shop": "open"}})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}, builder.WithPredicates(isOpen)).
		Owns(&appsv1.Deployment{}).
		Complete(r)
}
