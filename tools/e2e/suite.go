// Package suite names the official end-to-end suite, so that go.mod can say which one: make e2e compiles its tests.
package suite

import _ "k8s.io/kubernetes/test/e2e"
