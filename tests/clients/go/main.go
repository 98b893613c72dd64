// Checks what Go programs expect of the API server, with the libraries that they are made of.
//
// Every check has a name and a namespace of its own, and is answered by one line: `ok NAME` or `FAIL NAME: why`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 60 * time.Second // a check that hangs fails with what it was waiting for

type check struct {
	name string
	run  func(ctx context.Context, in *place) error
}

var checks = slices.Concat(typedChecks, listChecks, informerChecks, untypedChecks, leaderChecks, runtimeChecks)

// place is where a check works.
type place struct {
	config    *rest.Config
	clients   kubernetes.Interface
	namespace string
}

func main() {
	flags := flag.NewFlagSet("clients", flag.ExitOnError) // a library has taken --kubeconfig of the common set
	kubeconfig := flags.String("kubeconfig", "", "the server, and who asks")
	list := flags.Bool("list", false, "print the names of all checks")
	follow := flags.String("follow", "", "run no check: print what an informer reports of the ConfigMaps of a namespace")
	_ = flags.Parse(os.Args[1:]) // it exits rather than answer with an error
	if *list {
		for _, check := range checks {
			fmt.Println(check.name)
		}
		return
	}
	if *follow != "" {
		if err := followConfigMaps(*kubeconfig, *follow); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if !runAll(*kubeconfig, flags.Args()) {
		os.Exit(1)
	}
}

func runAll(kubeconfig string, names []string) bool {
	passed := true
	for _, check := range checks {
		if len(names) > 0 && !slices.Contains(names, check.name) {
			continue
		}
		if err := attempt(kubeconfig, check); err != nil {
			fmt.Printf("FAIL %s: %v\n", check.name, err)
			passed = false
		} else {
			fmt.Printf("ok %s\n", check.name)
		}
	}
	return passed
}

func attempt(kubeconfig string, check check) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: check.name + "-"}}
	namespace, err := clients.CoreV1().Namespaces().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return check.run(ctx, &place{config: config, clients: clients, namespace: namespace.Name})
}
