// Internaltypes writes what Kubernetes' internal types look like when a message shows a value of one: for every struct
// the fields as encoding/json writes them, and which field of the versioned type each of them comes from. It prints
// one packed JSON document; apiserver/kinds/common/data/README.md says what for.
package main

import (
	"compress/gzip"
	"encoding/json"
	"log"
	"os"
	"reflect"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

type field struct {
	Name string `json:"name,omitempty"`
	// From is the versioned field that holds the value, if there is one.
	From string `json:"from,omitempty"`
	// Zero is what is shown of nothing; of a struct that is always there, all its fields are.
	Zero any `json:"zero,omitempty"`
	// Struct is what the value is, or what the elements of the list or map are that Shape says it is.
	Struct string `json:"struct,omitempty"`
	Shape  string `json:"shape,omitempty"`
	// Omit is which value is not shown at all: an "empty" one, or only "nil".
	Omit string `json:"omit,omitempty"`
}

type walk struct {
	structs map[string][]field
	// unpaired are those found where the versioned type has no such field; most have a pair elsewhere.
	unpaired []reflect.Type
}

func main() {
	log.SetFlags(0)
	scheme := legacyscheme.Scheme
	apiextensions.Install(scheme)
	apiregistration.Install(scheme)
	w := &walk{structs: map[string][]field{}}
	known := scheme.AllKnownTypes()
	for _, gvk := range internalKinds(known) {
		for _, version := range scheme.PrioritizedVersionsForGroup(gvk.Group) {
			if versioned, ok := known[version.WithKind(gvk.Kind)]; ok {
				w.structure(known[gvk], versioned)
				break
			}
		}
	}
	for _, t := range w.unpaired {
		if _, seen := w.structs[t.String()]; !seen {
			w.structs[t.String()] = w.fields(t, reflect.TypeFor[struct{}]())
		}
	}
	packed := gzip.NewWriter(os.Stdout)
	if err := json.NewEncoder(packed).Encode(w.structs); err != nil {
		log.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		log.Fatal(err)
	}
}

// internalKinds come in an order, so that the same types make the same file.
func internalKinds(known map[schema.GroupVersionKind]reflect.Type) []schema.GroupVersionKind {
	found := []schema.GroupVersionKind{}
	for gvk, t := range known {
		if gvk.Version == runtime.APIVersionInternal && t.Kind() == reflect.Struct {
			found = append(found, gvk)
		}
	}
	slices.SortFunc(found, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// isWalked tells whether a type is a struct that is written field by field: an internal one, or one of meta/v1, which
// internal types use as they are.
func isWalked(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return false
	}
	path := t.PkgPath()
	return strings.HasPrefix(path, "k8s.io/kubernetes/") || strings.HasSuffix(path, "/apis/meta/v1") ||
		strings.HasSuffix(path, "/apis/apiextensions") || strings.HasSuffix(path, "/apis/apiregistration")
}

func (w *walk) structure(internal, versioned reflect.Type) string {
	name := internal.String()
	if _, seen := w.structs[name]; !seen {
		w.structs[name] = nil // a struct may contain itself
		w.structs[name] = w.fields(internal, versioned)
	}
	return name
}

func (w *walk) fields(internal, versioned reflect.Type) []field {
	found := []field{}
	for i := range internal.NumField() {
		f := internal.Field(i)
		switch {
		case f.Type == reflect.TypeFor[metav1.TypeMeta](), f.Type == reflect.TypeFor[metav1.ListMeta]():
		case f.Type == reflect.TypeFor[metav1.ObjectMeta]():
			// Written as the versioned one, but among the fields of the object.
			found = append(found, field{From: "metadata", Struct: w.structure(f.Type, f.Type), Shape: "inline"})
		case f.Anonymous:
			found = append(found, w.fields(f.Type, versioned)...)
		default:
			found = append(found, w.field(f, versioned))
		}
	}
	return found
}

func (w *walk) field(f reflect.StructField, versioned reflect.Type) field {
	made := field{Name: f.Name, Zero: zero(f.Type)}
	tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if tag != "" {
		made.Name = tag
	}
	if strings.Contains(options, "omit") {
		made.Omit = "empty"
		if f.Type.Kind() == reflect.Pointer {
			made.Omit = "nil"
		}
	}
	element, shape := element(f.Type)
	v, paired := versioned.FieldByName(f.Name)
	if paired {
		made.From, _, _ = strings.Cut(v.Tag.Get("json"), ",")
	}
	if shape == "map" {
		made.Shape = shape
	}
	if !isWalked(element) {
		return made
	}
	made.Struct, made.Shape = element.String(), shape
	if paired {
		w.structure(element, bare(v.Type))
	} else {
		w.unpaired = append(w.unpaired, element)
	}
	return made
}

func element(t reflect.Type) (reflect.Type, string) {
	switch t.Kind() {
	case reflect.Slice:
		return bare(t), "list"
	case reflect.Map:
		return bare(t), "map"
	}
	return bare(t), ""
}

func bare(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return bare(t.Elem())
	}
	return t
}

func zero(t reflect.Type) any {
	switch {
	case isWalked(t):
		return map[string]any{}
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		return nil
	}
	return reflect.Zero(t).Interface()
}
