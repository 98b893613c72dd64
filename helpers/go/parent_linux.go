package mockube

import (
	"os/exec"
	"syscall"
)

// endWithParent ends a command with SIGTERM when the thread that starts it ends: a goroutine that is locked to its thread waits for it.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
