package mockube

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// An access is how to reach a server: its URL, the certificate of its authority, and a token.
type access struct {
	server    string
	authority []byte
	token     string
}

// readKubeconfig reads a kubeconfig that mockube wrote: it has one cluster and one user, and one field in each line.
func readKubeconfig(path string) (access, error) {
	if path == "" {
		return access{}, errors.New("the path of the kubeconfig is empty: is KUBECONFIG set? `mockube kubeconfig --path` prints that of `mockube up`")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return access{}, err
	}
	fields := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ": "); found {
			if _, again := fields[name]; again && name == "server" {
				return access{}, fmt.Errorf("%s has several clusters: use a kubeconfig that mockube wrote", path)
			}
			fields[name] = strings.Trim(value, `"'`)
		}
	}
	for _, name := range []string{"server", "certificate-authority-data", "token"} {
		if fields[name] == "" {
			return access{}, fmt.Errorf("%s has no %s: use a kubeconfig that mockube wrote", path, name)
		}
	}
	authority, err := base64.StdEncoding.DecodeString(fields["certificate-authority-data"])
	if err != nil {
		return access{}, fmt.Errorf("%s: certificate-authority-data: %w", path, err)
	}
	return access{server: fields["server"], authority: authority, token: fields["token"]}, nil
}
