// Podtemplate prints what Go knows of pod templates. With the argument `types`: the Go types that one is made of, a line
// each. Without: the templates on standard input, JSON a line, each with the pod-template-hash that upstream gives it.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

type sample struct {
	Template       json.RawMessage `json:"template"`
	CollisionCount *int32          `json:"collisionCount,omitempty"`
	Hash           string          `json:"hash"`
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "types" {
		types()
		return
	}
	hashes()
}

func types() {
	found := map[string]any{}
	describe(reflect.TypeOf(core.PodTemplateSpec{}), found)
	lines := []string{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		encoded, err := json.Marshal(found[name])
		check(err)
		lines = append(lines, fmt.Sprintf("%q: %s", name, encoded))
	}
	fmt.Printf("{\n%s\n}\n", strings.Join(lines, ",\n"))
}

func describe(t reflect.Type, found map[string]any) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		describe(t.Elem(), found)
	case reflect.Map:
		if t.Name() != "" {
			note(found, t.String(), "map["+t.Key().String()+"]"+t.Elem().String())
		}
		describe(t.Key(), found)
		describe(t.Elem(), found)
	case reflect.Struct:
		if _, known := found[t.String()]; known || t.PkgPath() == "time" || t.Name() == "Quantity" {
			return
		}
		fields := [][3]string{}
		found[t.String()] = fields
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, [3]string{f.Name, name, f.Type.String()})
			describe(f.Type, found)
		}
		found[t.String()] = fields
	default:
		if t.PkgPath() != "" {
			note(found, t.String(), t.Kind().String())
		}
	}
}

func note(found map[string]any, name string, what any) {
	if old, known := found[name]; known && !reflect.DeepEqual(old, what) {
		panic("two types are called " + name)
	}
	found[name] = what
}

// hashes passes each template through protobuf first: so do controllers get them.
func hashes() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sample
		check(json.Unmarshal(lines.Bytes(), &s))
		var sent, kept core.PodTemplateSpec
		check(json.Unmarshal(s.Template, &sent))
		wire, err := sent.Marshal()
		check(err)
		check(kept.Unmarshal(wire))
		sum := fnv.New32a()
		fmt.Fprint(sum, dump.ForHash(kept))
		if s.CollisionCount != nil {
			count := make([]byte, 8)
			binary.LittleEndian.PutUint32(count, uint32(*s.CollisionCount))
			sum.Write(count)
		}
		s.Hash = rand.SafeEncodeString(fmt.Sprint(sum.Sum32()))
		check(json.NewEncoder(os.Stdout).Encode(s))
	}
	check(lines.Err())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
