// Package heal deletes pods that have failed, so that their owners make new ones.
package heal

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Failed deletes every failed pod of a namespace, and answers how many that were.
func Failed(ctx context.Context, client kubernetes.Interface, namespace string) (int, error) {
	pods := client.CoreV1().Pods(namespace)
	failed, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodFailed)})
	if err != nil {
		return 0, err
	}
	var problems []error
	for _, pod := range failed.Items {
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	return len(failed.Items), errors.Join(problems...)
}
