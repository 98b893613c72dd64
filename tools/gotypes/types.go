package main

import (
	"encoding/json"
	"log"
	"reflect"
	"slices"
	"strings"
)

// shapeOf names the types that read and write their JSON themselves. A new one stops the program: somebody has to
// say what its JSON looks like.
var shapeOf = map[string]string{
	"resource.Quantity":    "quantity",
	"intstr.IntOrString":   "int-or-string",
	"v1.Time":              "time",
	"v1.MicroTime":         "micro-time",
	"runtime.RawExtension": "any",
	"v1.FieldsV1":          "any",
	"v1.JSON":              "any",
	"v1beta1.JSON":         "any",

	// A schema or something else; the schema is their element.
	"v1.JSONSchemaPropsOrArray":            "any",
	"v1.JSONSchemaPropsOrBool":             "any",
	"v1.JSONSchemaPropsOrStringArray":      "any",
	"v1beta1.JSONSchemaPropsOrArray":       "any",
	"v1beta1.JSONSchemaPropsOrBool":        "any",
	"v1beta1.JSONSchemaPropsOrStringArray": "any",
}

var shapeOfKind = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "boolean",
	reflect.Int: "integer", reflect.Int32: "integer", reflect.Int64: "integer", reflect.Uint8: "integer",
	reflect.Float32: "number", reflect.Float64: "number", reflect.Interface: "any",
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// goType is a type as one use has it, without the pointer: that is the field's.
type goType struct {
	Go      string  `json:"go"`
	Shape   string  `json:"shape"`
	Name    string  `json:"name,omitempty"`
	Element *goType `json:"element,omitempty"`
}

type field struct {
	Name      string          `json:"name"`
	Type      *goType         `json:"type"`
	Pointer   bool            `json:"pointer,omitempty"`
	OmitEmpty bool            `json:"omit_empty,omitempty"`
	OmitZero  bool            `json:"omit_zero,omitempty"`
	Embedded  []string        `json:"embedded,omitempty"`
	Default   json.RawMessage `json:"default,omitempty"`

	declaredIn, goName string
}

type walk struct {
	structs  map[string][]field
	packages map[string]bool
}

// structure notes a struct and everything below it, and returns its name.
func (w *walk) structure(t reflect.Type) string {
	name := definition(t)
	if _, seen := w.structs[name]; !seen {
		w.structs[name] = nil // a struct may contain itself
		w.structs[name] = w.fields(t, nil)
	}
	return name
}

func (w *walk) fields(t reflect.Type, embedded []string) []field {
	w.packages[t.PkgPath()] = true
	found := []field{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous:
			if f.Type.Kind() != reflect.Struct {
				log.Fatalf("%s.%s: embedded as %s", t, f.Name, f.Type)
			}
			found = append(found, w.fields(f.Type, append(embedded[:len(embedded):len(embedded)], f.Name))...)
		default:
			found = append(found, w.field(t, f, name, options, embedded))
		}
	}
	return found
}

func (w *walk) field(t reflect.Type, f reflect.StructField, name, options string, embedded []string) field {
	made := field{Name: name, Embedded: embedded, declaredIn: t.PkgPath() + "." + t.Name(), goName: f.Name}
	if name == "" {
		made.Name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			made.OmitEmpty = true
		case "omitzero":
			made.OmitZero = true
		case "", "inline":
		default:
			log.Fatalf("%s.%s: the JSON option %q is not known", t, f.Name, option)
		}
	}
	made.Pointer = f.Type.Kind() == reflect.Pointer
	made.Type = w.use(bare(f.Type))
	return made
}

func (w *walk) use(t reflect.Type) *goType {
	made := &goType{Go: t.String(), Shape: shapeOfKind[t.Kind()]}
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
		made.Shape = shapeOf[made.Go]
		if schema, either := t.FieldByName("Schema"); either {
			made.Element = w.use(bare(schema.Type))
		}
	case t.Kind() == reflect.Struct:
		made.Shape, made.Name = "struct", w.structure(t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		made.Shape = "bytes"
	case t.Kind() == reflect.Slice:
		made.Shape, made.Element = "list", w.element(t)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		made.Shape, made.Element = "map", w.element(t)
	}
	if made.Shape == "" {
		log.Fatalf("%s: what does its JSON look like?", t)
	}
	return made
}

func (w *walk) element(t reflect.Type) *goType {
	if t.Elem().Kind() == reflect.Pointer {
		log.Fatalf("%s: elements that are pointers are not foreseen", t)
	}
	return w.use(t.Elem())
}

func bare(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// definition is what OpenAPI calls a struct: the first part of its package's path is turned around.
func definition(t reflect.Type) string {
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}
