package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// followConfigMaps prints each event that an informer reports, one to a line, until the process is ended.
func followConfigMaps(kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	events := make(chan string)
	if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(teller(events)); err != nil {
		return err
	}
	factory.StartWithContext(context.Background())
	for event := range events {
		fmt.Println(event)
	}
	return nil
}
