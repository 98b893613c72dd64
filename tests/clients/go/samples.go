package main

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func lease(name string) *coordinationv1.Lease {
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To("somebody"),
		LeaseDurationSeconds: ptr.To(int32(15)),
		RenewTime:            ptr.To(metav1.NowMicro()),
	}
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func podSpec() corev1.PodSpec {
	port := intstr.FromString("http")
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name:           "web",
			Image:          "nginx:1.25",
			Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			Env:            []corev1.EnvVar{{Name: "A", Value: "b"}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port}}},
		}},
		Volumes: []corev1.Volume{{
			Name: "empty",
			VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("1Gi"))},
			},
		}},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}
}
