// Gotypes prints, as JSON, what the Go types of Kubernetes say about themselves: of every kind in the schemes, and of
// every struct reachable from one, the fields as encoding/json sees them. It reads types, never source; see
// defaults.go for the one fact that stands only in comments.
package main

import (
	"encoding/json"
	"log"
	"os"
	"runtime/debug"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/scheme"
)

type facts struct {
	Modules map[string]string            `json:"modules"`
	Kinds   map[string]map[string]string `json:"kinds"`
	Structs map[string][]field           `json:"structs"`
}

func main() {
	log.SetFlags(0)
	kinds := kinds()
	w := &walk{structs: map[string][]field{}, packages: map[string]bool{}}
	found := facts{Modules: modules(), Kinds: map[string]map[string]string{}, Structs: w.structs}
	for gvk, t := range kinds.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		version := gvk.GroupVersion().String()
		if found.Kinds[version] == nil {
			found.Kinds[version] = map[string]string{}
		}
		found.Kinds[version][gvk.Kind] = w.structure(t)
	}
	if err := w.declareDefaults(); err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

// kinds is one scheme with everything that kube-apiserver serves or sends.
func kinds() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensions.AddToScheme, aggregator.AddToScheme,
		admissionv1.AddToScheme, admissionv1beta1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(all); err != nil {
			log.Fatal(err)
		}
	}
	return all
}

func modules() map[string]string {
	versions := map[string]string{}
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, "k8s.io/") {
			versions[module.Path] = module.Version
		}
	}
	return versions
}
