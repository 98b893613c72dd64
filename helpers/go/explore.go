package mockube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// findings is the folder for the files of findings, unless a flag names another one.
const findings = "findings"

// An Exploration is what mockube explore has found. Its text is the report.
type Exploration struct {
	Findings []Finding
	// Plans is how many plans were tried.
	Plans int
	// Duration is how long the plans took.
	Duration time.Duration
	// Covered and Coverable are how many disturbances of each area took place alone, and how many there are.
	Covered, Coverable map[string]int
	// NotApplied is how many plans did not take place, and NotJudged how many could not be judged, by the reason.
	NotApplied int
	NotJudged  map[string]int
	// NotSeenAgain is how many findings were left out, because no repetition showed them.
	NotSeenAgain int
	// Notes are what is not the same each time without a disturbance.
	Notes []string

	text string
}

// A Finding is something that an operator does wrong, with the smallest plan that shows it.
type Finding struct {
	Problems []string
	// When is what was disturbed.
	When []string
	// History is what happened, in at most ten lines.
	History []string
	// Confirmed is how many of the Repetitions showed it again, and Others how many other plans did.
	Confirmed, Repetitions, Others int
	// File is the path of a file that mockube explore --replay and ReplayFinding run again.
	File string
	// Test is the path of a test in Go, Report that of a page with the timelines of both runs, and Log that of what the operator printed; "" if
	// there is none.
	Test, Report, Log string
}

// String returns the report.
func (e *Exploration) String() string { return e.text }

// Explore runs an operator in forks of a cluster, disturbs each run at another moment, and returns what then is wrong. The scenario is the
// path of a file, the operator a command, and the flags are those of mockube explore, such as --plans=100. The files of findings are
// written into the folder findings, unless there is a flag --output=DIR. A scenario that does not work undisturbed ends the test.
func Explore(tb testing.TB, scenario string, command []string, flags ...string) *Exploration {
	tb.Helper()
	found, err := explore(scenario, command, flags)
	must(tb, err)
	return found
}

// ReplayFinding runs the plan of a finding's file again. The test fails if something is wrong still, and if the plan does not take place.
func ReplayFinding(tb testing.TB, file string, flags ...string) {
	tb.Helper()
	report, err := runExplore(append(append([]string{}, flags...), "--replay="+file))
	must(tb, err)
	if report.code != 0 {
		tb.Errorf("%s\n%s%s", file, report.output, report.messages)
	}
}

func explore(scenario string, command, flags []string) (*Exploration, error) {
	folder := findings
	for _, flag := range flags {
		if name, value, ok := strings.Cut(flag, "="); ok && name == "--output" {
			folder = value
		}
	}
	index := filepath.Join(folder, "findings.json")
	if err := os.Remove(index); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err // that of an earlier exploration would be taken for a result
	}
	arguments := append([]string{"--tests=go", "--output=" + folder}, flags...)
	report, err := runExplore(append(append(arguments, scenario, "--"), command...))
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(index)
	if err != nil {
		return nil, fmt.Errorf("mockube explore %s ended with code %d:\n%s%s", scenario, report.code, report.output, report.messages)
	}
	return readExploration(content, folder, report.output)
}

func readExploration(content []byte, folder, text string) (*Exploration, error) {
	var read struct {
		Exploration
		Seconds float64
	}
	if err := json.Unmarshal(content, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	found := read.Exploration
	found.text = text
	found.Duration = time.Duration(read.Seconds * float64(time.Second))
	for i := range found.Findings {
		finding := &found.Findings[i]
		for _, path := range []*string{&finding.File, &finding.Test, &finding.Report, &finding.Log} {
			if *path != "" {
				*path = filepath.Join(folder, *path)
			}
		}
	}
	return &found, nil
}

// An exploreReport is how the program has ended.
type exploreReport struct {
	code             int
	output, messages string
}

func runExplore(arguments []string) (*exploreReport, error) {
	path, err := findProgram()
	if err != nil {
		return nil, err
	}
	command := exec.Command(path, append([]string{"explore"}, arguments...)...)
	var output, messages bytes.Buffer
	command.Stdout, command.Stderr = &output, &messages
	endWithParent(command) // it runs for minutes, and a test may be killed
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return &exploreReport{command.ProcessState.ExitCode(), output.String(), messages.String()}, nil
}
