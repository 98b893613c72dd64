package mockube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// found is what mockube explore writes about a finding.
const found = `{"findings": [{"problems": ["a is left over"], "when": ["the operator restarts"], "history": ["0.1 s a"], "confirmed": 3,
"repetitions": 3, "file": "finding-1.yaml", "test": "finding_1_test.go", "report": ""}], "plans": 7, "seconds": 1.5, "covered": {"steps": 1}}`

// programWith lets explorations run a script in place of mockube.
func programWith(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mockube")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(program, path)
}

func TestExplorationHasFindingsWithTheirFiles(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("FOUND", found)
	programWith(t, `echo "$@"; echo "$FOUND" > `+folder+`/findings.json; exit 1`)
	exploration := Explore(t, "scenario.yaml", []string{"./manager", "-a"}, "--plans=7", "--output="+folder)
	if text := exploration.String(); text != "explore --tests=go --output="+folder+" --plans=7 --output="+folder+" scenario.yaml -- ./manager -a\n" {
		t.Errorf("the arguments: %s", text)
	}
	if exploration.Plans != 7 || exploration.Duration != 1500*time.Millisecond || exploration.Covered["steps"] != 1 {
		t.Errorf("the exploration: %+v", exploration)
	}
	if len(exploration.Findings) != 1 {
		t.Fatalf("%d findings", len(exploration.Findings))
	}
	finding := exploration.Findings[0]
	if finding.Problems[0] != "a is left over" || finding.When[0] != "the operator restarts" || finding.Confirmed != 3 {
		t.Errorf("the finding: %+v", finding)
	}
	if finding.File != filepath.Join(folder, "finding-1.yaml") || finding.Test != filepath.Join(folder, "finding_1_test.go") || finding.Report != "" {
		t.Errorf("the files: %+v", finding)
	}
}

func TestExplorationThatFailsIsNoResultOfAnEarlierOne(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "findings.json"), []byte(found), 0o644); err != nil {
		t.Fatal(err)
	}
	programWith(t, `echo "scenario.yaml: No such file" >&2; exit 2`)
	_, err := explore("scenario.yaml", []string{"./manager"}, []string{"--output=" + folder})
	if err == nil || !strings.Contains(err.Error(), "ended with code 2:\nscenario.yaml: No such file") {
		t.Errorf("the error: %v", err)
	}
}

// A failingTest notes the errors of a test.
type failingTest struct {
	testing.TB
	errors []string
}

func (f *failingTest) Helper() {}

func (f *failingTest) Errorf(format string, arguments ...any) {
	f.errors = append(f.errors, format)
}

func TestReplayFailsWhileTheFindingIsThere(t *testing.T) {
	for code, failures := range map[string]int{"0": 0, "1": 1, "2": 1} {
		programWith(t, "exit "+code)
		test := &failingTest{TB: t}
		ReplayFinding(test, "finding-1.yaml")
		if len(test.errors) != failures {
			t.Errorf("code %s: %d errors", code, len(test.errors))
		}
	}
}
