package mockube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// program is the environment variable that names the program, if it is not mockube on the PATH.
const program = "MOCKUBE"

// holdOpen is the command for which the cluster exists: it prints the kubeconfig, and ends when its input does, so that the cluster
// ends with the test even if the test is killed.
const holdOpen = `printf '%s\n' "$KUBECONFIG"; exec cat >/dev/null`

// A process is a running command mockube run.
type process struct {
	kubeconfig string
	stop       func() error
}

// findProgram returns the path of the program mockube.
func findProgram() (string, error) {
	name := os.Getenv(program)
	if name == "" {
		name = "mockube"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the program mockube is not on the PATH, and %s does not name it: %w", program, err)
	}
	return path, nil
}

func startProcess(flags []string) (*process, error) {
	path, err := findProgram()
	if err != nil {
		return nil, err
	}
	command := exec.Command(path, append(append([]string{"run"}, flags...), "--", "sh", "-c", holdOpen)...)
	var messages bytes.Buffer
	command.Stderr = &messages
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := sync.OnceValue(func() error {
		return errors.Join(ignoreClosed(input.Close()), describe(command.Wait(), &messages))
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s did not start a cluster: %w", strings.Join(command.Args[:2+len(flags)], " "), stop())
	}
	return &process{kubeconfig: strings.TrimSuffix(line, "\n"), stop: stop}, nil
}

// ignoreClosed returns an error, unless the program has ended before.
func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// describe adds what a program has written to its error.
func describe(err error, messages *bytes.Buffer) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mockube: %w\n%s", err, messages)
}
