// Prints the declarations of Go files as JSON: by file and by name, the code of each function, method, type, variable
// and constant in gofmt's format, without comments and blank lines. Of a generated validation it prints the rules only,
// because the code around them changes with its generator.
//
// The paths of the files are the lines of the input. `tools/minors/comparison.py` runs it as `go run main.go`.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"regexp"
	"strings"
)

func main() {
	files := map[string]map[string]string{}
	paths := bufio.NewScanner(os.Stdin)
	for paths.Scan() {
		declarations, err := read(paths.Text())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		files[paths.Text()] = declarations
	}
	if err := json.NewEncoder(os.Stdout).Encode(files); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) (map[string]string, error) {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	declarations := map[string]string{}
	for _, declaration := range file.Decls {
		switch one := declaration.(type) {
		case *ast.FuncDecl:
			text := code(positions, one)
			if strings.HasSuffix(path, "/zz_generated.validations.go") {
				text = rules(positions, one)
			}
			add(declarations, functionName(one), text)
		case *ast.GenDecl:
			for _, spec := range one.Specs {
				if name := specName(spec); name != "" {
					add(declarations, name, one.Tok.String()+" "+code(positions, spec))
				}
			}
		}
	}
	return declarations, nil
}

// A file may have several functions `init` and variables `_`.
func add(declarations map[string]string, name, text string) {
	if before, exists := declarations[name]; exists {
		text = before + "\n" + text
	}
	declarations[name] = text
}

func functionName(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	for {
		switch one := receiver.(type) {
		case *ast.StarExpr:
			receiver = one.X
		case *ast.IndexExpr:
			receiver = one.X
		case *ast.IndexListExpr:
			receiver = one.X
		case *ast.Ident:
			return one.Name + "." + function.Name.Name
		default:
			return function.Name.Name
		}
	}
}

// Imports have no name: they change with what uses them.
func specName(spec ast.Spec) string {
	switch one := spec.(type) {
	case *ast.TypeSpec:
		return one.Name.Name
	case *ast.ValueSpec:
		names := []string{}
		for _, name := range one.Names {
			names = append(names, name.Name)
		}
		return strings.Join(names, ", ")
	}
	return ""
}

// A longer name of a neighbour moves a line's columns.
var alignment = regexp.MustCompile(`(\S)[ \t]{2,}`)

func code(positions *token.FileSet, node any) string {
	var text bytes.Buffer
	format := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}
	if err := format.Fprint(&text, positions, node); err != nil {
		panic(err)
	}
	lines := []string{}
	for _, line := range strings.Split(text.String(), "\n") {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, alignment.ReplaceAllString(line, "$1 "))
		}
	}
	return strings.Join(lines, "\n")
}

// The rules of a generated validation, each on a line, with the fields that they belong to after them.
func rules(positions *token.FileSet, function *ast.FuncDecl) string {
	lines := []string{"func " + function.Name.Name}
	ast.Inspect(function.Body, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is || !isRule(call) {
			return true
		}
		text := strings.Join(strings.Fields(code(positions, call)), " ")
		text = strings.ReplaceAll(text, "ctx, op, fldPath, obj, oldObj", "")
		lines = append(lines, strings.ReplaceAll(text, ".MarkShortCircuit()", ""))
		return false
	})
	return strings.Join(lines, "\n")
}

// Calls of the package `validate`, of other generated validations, and `fldPath.Child`.
func isRule(call *ast.CallExpr) bool {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return strings.HasPrefix(function.Name, "Validate_")
	case *ast.SelectorExpr:
		switch left := function.X.(type) {
		case *ast.CallExpr:
			return isRule(left)
		case *ast.Ident:
			return left.Name == "validate" || function.Sel.Name == "Child" || strings.HasPrefix(function.Sel.Name, "Validate_")
		}
	}
	return false
}
