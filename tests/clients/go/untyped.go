package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

var untypedChecks = []check{
	{"dynamic-client", checkDynamic},
	{"metadata-client", checkMetadata},
	{"discovery-is-aggregated", checkDiscovery},
	{"mapper-knows-short-names", checkMapper},
	{"open-api-has-every-group", checkOpenAPI},
}

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

func checkDynamic(ctx context.Context, in *place) error {
	clients, err := dynamic.NewForConfig(in.config)
	if err != nil {
		return err
	}
	client := clients.Resource(deployments).Namespace(in.namespace)
	wanted := unstructuredDeployment("a", 2)
	applied, err := client.Apply(ctx, "a", wanted, metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	_, err = client.Apply(ctx, "a", unstructuredDeployment("a", 3), metav1.ApplyOptions{FieldManager: "other"})
	if err := refused("an apply over somebody else's field", err, apierrors.IsConflict); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(applied.Object, int64(1), "status", "observedGeneration"); err != nil {
		return err
	}
	changed, err := client.UpdateStatus(ctx, applied, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	observed, _, err := unstructured.NestedInt64(changed.Object, "status", "observedGeneration")
	if err != nil || observed != 1 {
		return fmt.Errorf("the status says %d, error %v", observed, err)
	}
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=a"}); err != nil {
		return err
	}
	left, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return same("what is left", len(left.Items), 0)
}

func unstructuredDeployment(name string, replicas int64) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	container := map[string]any{"name": "web", "image": "nginx:1.25"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"name": name, "labels": labels},
		"spec": map[string]any{
			"replicas": replicas,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{container}},
			},
		},
	}}
}

func checkMetadata(ctx context.Context, in *place) error {
	clients, err := metadata.NewForConfig(in.config)
	if err != nil {
		return err
	}
	client := clients.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(in.namespace)
	watcher, err := client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	maps := in.clients.CoreV1().ConfigMaps(in.namespace)
	made, err := maps.Create(ctx, configMap("a", map[string]string{"k": "v"}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	got, err := client.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := same("the metadata", got.ObjectMeta, made.ObjectMeta); err != nil {
		return err
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	events, err := take(ctx, watcher, 2)
	if err != nil {
		return err
	}
	if err := same("the first object", events[0].Object.(*metav1.PartialObjectMetadata).ObjectMeta, made.ObjectMeta); err != nil {
		return err
	}
	return same("the events", kinds(events), []watch.EventType{watch.Added, watch.Deleted})
}

func checkDiscovery(_ context.Context, in *place) error {
	counter := &mediaTypes{}
	config := rest.CopyConfig(in.config)
	config.Wrap(counter.wrap)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, resources, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if err := same("the number of requests", len(counter.seen)/2, 2); err != nil {
		return err
	}
	plain := discovery.NewDiscoveryClient(client.RESTClient())
	plain.UseLegacyDiscovery = true
	plainGroups, plainResources, err := plain.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if err := same("the groups, one by one", len(plainGroups), len(groups)); err != nil {
		return err
	}
	if err := same("the resources, one by one", namesOf(plainResources), namesOf(resources)); err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	return same("the major version", version.Major, "1")
}

// namesOf tells what there is in each version of a group, subresources left out.
func namesOf(lists []*metav1.APIResourceList) map[string]string {
	names := map[string]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			names[list.GroupVersion+" "+resource.Name] = resource.Kind
		}
	}
	return names
}

func checkMapper(_ context.Context, in *place) error {
	client, err := discovery.NewDiscoveryClientForConfig(in.config)
	if err != nil {
		return err
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	found, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "deploy"})
	if err != nil {
		return err
	}
	if err := same("what deploy is short for", found, deployments); err != nil {
		return err
	}
	kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: "leases"})
	if err != nil {
		return err
	}
	return same("the kind of leases", kind.Kind, "Lease")
}

func checkOpenAPI(_ context.Context, in *place) error {
	client, err := discovery.NewDiscoveryClientForConfig(in.config)
	if err != nil {
		return err
	}
	document, err := client.OpenAPISchema()
	if err != nil {
		return err
	}
	if err := same("whether version 2 defines anything", len(document.GetDefinitions().GetAdditionalProperties()) > 100, true); err != nil {
		return err
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	if paths["apis/apps/v1"] == nil {
		return fmt.Errorf("apis/apps/v1 is not among %d paths", len(paths))
	}
	text, err := paths["apis/apps/v1"].Schema("application/json")
	if err != nil {
		return err
	}
	return same("whether version 3 says much of apps", len(text) > 10_000, true)
}
