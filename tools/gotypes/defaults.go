package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const marker = "+default="

// declareDefaults adds to each field the literal that its comment declares as default. Server-side apply needs those
// of list map keys, and OpenAPI v2 leaves them out.
func (w *walk) declareDefaults() error {
	declared := map[string]json.RawMessage{}
	directories, err := directories(slices.Sorted(maps.Keys(w.packages)))
	if err != nil {
		return err
	}
	for path, directory := range directories {
		files, _ := filepath.Glob(filepath.Join(directory, "*.go"))
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			readMarkers(parsed, path, declared)
		}
	}
	for _, fields := range w.structs {
		for i := range fields {
			fields[i].Default = declared[fields[i].declaredIn+"."+fields[i].goName]
		}
	}
	return nil
}

func directories(packages []string) (map[string]string, error) {
	output, err := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, directory, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[path] = directory
	}
	return found, nil
}

func readMarkers(file *ast.File, path string, declared map[string]json.RawMessage) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if structure, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range structure.Fields.List {
				if value := literal(field.Doc); value != nil && len(field.Names) == 1 {
					declared[path+"."+spec.Name.Name+"."+field.Names[0].Name] = value
				}
			}
		}
		return false
	})
}

// literal is the default that a comment declares, or nil; a reference to a constant is none.
func literal(comment *ast.CommentGroup) json.RawMessage {
	if comment == nil {
		return nil
	}
	for _, line := range comment.List {
		text := strings.TrimSpace(strings.TrimPrefix(line.Text, "//"))
		if value, found := strings.CutPrefix(text, marker); found && json.Valid([]byte(value)) {
			return json.RawMessage(value)
		}
	}
	return nil
}
