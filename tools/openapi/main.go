// Openapi writes what kube-apiserver's own OpenAPI definitions say and the published document leaves out of them: which
// values a field may have and what each of them means, and defaults. It prints one packed JSON document;
// apiserver/openapi/data/README.md says what for.
package main

import (
	"compress/gzip"
	"encoding/json"
	"log"
	"os"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// header begins the part of a description that was made from the constants of the field's type.
const header = "Possible enum values:\n"

// unpublished are types that are parameters of requests, or that discovery answers with: the published document has none of them.
var unpublished = []string{
	"ListOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions", "PodLogOptions", "PodExecOptions",
	"PodAttachOptions", "PodPortForwardOptions", "PodProxyOptions", "ServiceProxyOptions", "NodeProxyOptions", "APIVersions",
	"APIGroupList", "APIGroup", "GroupVersionForDiscovery", "ServerAddressByClientCIDR", "Patch",
}

func isUnpublished(name string) bool {
	packageOf, kind := name[:strings.LastIndex(name, ".")], name[strings.LastIndex(name, ".")+1:]
	switch packageOf {
	case "io.k8s.api.core.v1", "io.k8s.apimachinery.pkg.apis.meta.v1":
		return slices.Contains(unpublished, kind)
	}
	return name == "io.k8s.apimachinery.pkg.version.Info"
}

func reference(name string) spec.Ref {
	return spec.MustCreateRef("#/definitions/" + published(name))
}

// published is what OpenAPI calls a definition: until 1.34 they are known here by the paths of their types.
func published(name string) string {
	if strings.Contains(name, "/") {
		return util.ToRESTFriendlyName(name)
	}
	return name
}

type data struct {
	Additions   map[string]*addition   `json:"additions"`
	Definitions map[string]spec.Schema `json:"definitions"`
}

// addition is what is added to a schema: a description to the end of its own.
type addition struct {
	Description string               `json:"description,omitempty"`
	Default     any                  `json:"default,omitempty"`
	Enum        []any                `json:"enum,omitempty"`
	Items       *addition            `json:"items,omitempty"`
	Values      *addition            `json:"additionalProperties,omitempty"`
	Properties  map[string]*addition `json:"properties,omitempty"`
}

func main() {
	log.SetFlags(0)
	found := data{Additions: map[string]*addition{}, Definitions: map[string]spec.Schema{}}
	for name, definition := range openapi.GetOpenAPIDefinitions(reference) {
		name = published(name)
		if made := additionTo(&definition.Schema); made != nil {
			found.Additions[name] = made
		}
		if isUnpublished(name) {
			found.Definitions[name] = definition.Schema
		}
	}
	packed := gzip.NewWriter(os.Stdout)
	if err := json.NewEncoder(packed).Encode(found); err != nil {
		log.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		log.Fatal(err)
	}
}

// additionTo is nil if there is nothing to add.
func additionTo(schema *spec.Schema) *addition {
	made := addition{Description: missing(schema), Default: schema.Default, Enum: schema.Enum}
	if schema.Items != nil {
		made.Items = additionTo(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		made.Values = additionTo(schema.AdditionalProperties.Schema)
	}
	for name, property := range schema.Properties {
		if below := additionTo(&property); below != nil {
			if made.Properties == nil {
				made.Properties = map[string]*addition{}
			}
			made.Properties[name] = below
		}
	}
	if made.Description == "" && made.Default == nil && made.Enum == nil && made.Items == nil && made.Values == nil &&
		made.Properties == nil {
		return nil
	}
	return &made
}

// missing is the end of a description, from the empty line above the header on.
func missing(schema *spec.Schema) string {
	before, values, found := strings.Cut(schema.Description, header)
	if !found {
		return ""
	}
	return schema.Description[len(strings.TrimRight(before, "\n")):len(before)] + header + values
}
