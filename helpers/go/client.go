package mockube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// agent is the User-Agent of the requests of this package.
const agent = "mockube-helper-go"

// A StatusError is the error that the server returned, with its code and its reason as in kubectl.
type StatusError struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (e *StatusError) Error() string { return e.Message }

// IsNotFound returns whether the server has no such object, or no such kind.
func IsNotFound(err error) bool {
	var failure *StatusError
	return errors.As(err, &failure) && failure.Code == http.StatusNotFound
}

const (
	// requestTime is how long a request may take: longer than the server takes, which ends its requests after a minute.
	requestTime = 2 * time.Minute
	// advanceTime is the same for an advance, which waits until everything has happened that was due.
	advanceTime = 10 * time.Minute
)

type client struct {
	http   *http.Client
	access access
	// time is how long a request may take, except an advance.
	time time.Duration
}

func newClient(access access) (*client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(access.authority) {
		return nil, errors.New("certificate-authority-data is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	return &client{http: &http.Client{Transport: transport}, access: access, time: requestTime}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) do(method, path string, in, out any) error {
	_, err := c.send(method, path, in, out)
	return err
}

// send returns the headers of the response, too.
func (c *client) send(method, path string, in, out any) (http.Header, error) {
	var body io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	allowed := c.time
	if path == advancePath {
		allowed = advanceTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), allowed)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.access.server+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.access.token)
	request.Header.Set("User-Agent", agent)
	if in != nil {
		request.Header.Set("Content-Type", contentType(method))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, statusError(response.StatusCode, content)
	}
	if out == nil {
		return response.Header, nil
	}
	return response.Header, json.Unmarshal(content, out)
}

// stream begins to read a response that goes on.
func (c *client) stream(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.access.server+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.access.token)
	request.Header.Set("User-Agent", agent)
	response, err := c.http.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return response, err
}

func contentType(method string) string {
	if method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// statusError returns the error of a response, which is a Status unless a fault has replaced it.
func statusError(code int, content []byte) *StatusError {
	failure := &StatusError{}
	if json.Unmarshal(content, failure) != nil || failure.Message == "" {
		failure.Message = fmt.Sprintf("the server returned %d: %s", code, bytes.TrimSpace(content))
	}
	failure.Code = code
	return failure
}
