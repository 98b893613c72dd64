// Kubernetes is the real API server, controller manager and scheduler in one program, which is the one that it is
// called by the name of. `python -m tools.minors build` builds it.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	components := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": manager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	component, known := components[filepath.Base(os.Args[0])]
	if !known {
		log.Fatalf("%s is none of the components: call this by the name of one", os.Args[0])
	}
	os.Exit(cli.Run(component()))
}
