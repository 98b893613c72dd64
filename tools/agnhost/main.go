// Agnhost is the part of the suite's image of this name that serves requests: the suite's pods run it as processes.
package main

import (
	"flag"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook/converter"
	health "k8s.io/kubernetes/test/images/agnhost/grpc-health-checking"
	"k8s.io/kubernetes/test/images/agnhost/liveness"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

// A process finds the files of its volumes below this folder.
var root = os.Getenv("MOCKUBE_ROOT")

// The image's own command reads the pod's token at a fixed path, which a process does not have.
func conversionWebhook() *cobra.Command {
	var certificate, key, port string
	command := &cobra.Command{
		Use: "crd-conversion-webhook",
		RunE: func(*cobra.Command, []string) error {
			http.HandleFunc("/crdconvert", converter.ServeExampleConvert)
			http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) })
			return http.ListenAndServeTLS(":"+port, certificate, key, nil)
		},
	}
	command.Flags().StringVar(&certificate, "tls-cert-file", "", "")
	command.Flags().StringVar(&key, "tls-private-key-file", "", "")
	command.Flags().StringVar(&port, "port", "443", "")
	return command
}

func main() {
	for i, arg := range os.Args {
		if name, file, found := strings.Cut(arg, "="); found && strings.HasPrefix(name, "--tls-") {
			os.Args[i] = name + "=" + root + file
		}
	}
	command := &cobra.Command{Use: "agnhost"}
	logging := flag.NewFlagSet("", flag.ExitOnError)
	klog.InitFlags(logging)
	command.PersistentFlags().AddGoFlagSet(logging)
	command.AddCommand(
		conversionWebhook(),
		health.CmdGrpcHealthChecking,
		liveness.CmdLiveness,
		webhook.CmdWebhook,
	)
	if err := command.Execute(); err != nil {
		os.Exit(1)
	}
}
