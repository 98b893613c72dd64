// A suite on controller-runtime's envtest whose binaries run the controllers, too: pods become ready, and namespaces go away.
// It compiles with the oldest and the newest supported version of controller-runtime (oldest.mod, go.mod). It prints `ok NAME`
// for each step. Flags: the number of rounds, each with its own control plane; how much slower the program's connections are,
// as in a build with -race; more flags of the API server, as NAME=VALUE.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const patience = time.Minute

func main() {
	rounds := flag.Int("rounds", 1, "")
	delay := flag.Duration("delay", 0, "")
	flag.Parse()
	for range *rounds {
		if err := round(*delay, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL", err)
			os.Exit(1)
		}
	}
}

func round(delay time.Duration, flags []string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	environment := &envtest.Environment{
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{definition()},
		WebhookInstallOptions: envtest.WebhookInstallOptions{MutatingWebhooks: []*registrationv1.MutatingWebhookConfiguration{webhooks()}},
	}
	for _, each := range flags {
		name, value, _ := strings.Cut(each, "=")
		environment.ControlPlane.GetAPIServer().Configure().Set(name, value)
	}
	config, err := environment.Start()
	if err != nil {
		return err
	}
	fmt.Println("ok start")
	defer func() {
		if stopped := environment.Stop(); err == nil {
			err = stopped
		}
		if err == nil {
			fmt.Println("ok stop")
		}
	}()
	options := environment.WebhookInstallOptions
	go serveWebhook(options)
	admin, err := slowClient(config, delay)
	if err != nil {
		return err
	}
	if os.Getenv("USE_EXISTING_CLUSTER") != "true" {
		if err := checkUsers(ctx, environment, delay); err != nil {
			return err
		}
	}
	return check(ctx, admin)
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shops.shop.test"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "shop.test",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shops", Singular: "shop", Kind: "Shop", ListKind: "ShopList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
				},
			}},
		},
	}
}

func webhooks() *registrationv1.MutatingWebhookConfiguration {
	path, none, fail := "/label", registrationv1.SideEffectClassNone, registrationv1.Fail
	return &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "label"},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name:                    "label.shop.test",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &none,
			FailurePolicy:           &fail,
			ClientConfig: registrationv1.WebhookClientConfig{
				Service: &registrationv1.ServiceReference{Namespace: "default", Name: "label", Path: &path},
			},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule:       registrationv1.Rule{APIGroups: []string{"shop.test"}, APIVersions: []string{"v1"}, Resources: []string{"shops"}},
			}},
		}},
	}
}

func serveWebhook(options envtest.WebhookInstallOptions) {
	handler := http.NewServeMux()
	handler.HandleFunc("/label", func(writer http.ResponseWriter, request *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		patchType := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &patchType,
			Patch: []byte(`[{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]`),
		}
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(review)
	})
	server := &http.Server{
		Addr:    net.JoinHostPort(options.LocalServingHost, fmt.Sprint(options.LocalServingPort)),
		Handler: handler,
	}
	folder := options.LocalServingCertDir
	fmt.Fprintln(os.Stderr, server.ListenAndServeTLS(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")))
}

// slowConn waits before it reads or writes, as a busy program does.
type slowConn struct {
	net.Conn
	delay time.Duration
}

func (c slowConn) Read(data []byte) (int, error) {
	time.Sleep(c.delay)
	return c.Conn.Read(data)
}

func (c slowConn) Write(data []byte) (int, error) {
	time.Sleep(c.delay)
	return c.Conn.Write(data)
}

func slowClient(config *rest.Config, delay time.Duration) (client.Client, error) {
	copied := rest.CopyConfig(config)
	if delay > 0 {
		copied.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return slowConn{connection, delay}, err
		}
	}
	return client.New(copied, client.Options{})
}

func checkUsers(ctx context.Context, environment *envtest.Environment, delay time.Duration) error {
	for group, isAllowed := range map[string]bool{"system:masters": true, "dev": false} {
		user, err := environment.AddUser(envtest.User{Name: "ann", Groups: []string{group}}, nil)
		if err != nil {
			return err
		}
		made, err := slowClient(user.Config(), delay)
		if err != nil {
			return err
		}
		err = made.List(ctx, &corev1.NamespaceList{})
		if isAllowed && err != nil || !isAllowed && !apierrors.IsForbidden(err) {
			return fmt.Errorf("a user of %s: %v", group, err)
		}
	}
	fmt.Println("ok users")
	return nil
}

func check(ctx context.Context, admin client.Client) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "suite-"}}
	if err := admin.Create(ctx, namespace); err != nil {
		return err
	}
	shop := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "shop.test/v1", "kind": "Shop"}}
	shop.SetNamespace(namespace.Name)
	shop.SetName("corner")
	// The webhook's server may still be starting.
	if err := until(ctx, func() error { return admin.Create(ctx, shop) }); err != nil {
		return err
	}
	if shop.GetLabels()["seen"] != "yes" {
		return fmt.Errorf("the webhook has not changed %v", shop.Object)
	}
	fmt.Println("ok webhook")
	deployment := deployment(namespace.Name)
	if err := admin.Create(ctx, deployment); err != nil {
		return err
	}
	if err := until(ctx, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if ready := deployment.Status.ReadyReplicas; ready != *deployment.Spec.Replicas {
			return fmt.Errorf("the Deployment has %d ready pods", ready)
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Println("ok deployment")
	if err := admin.Delete(ctx, namespace); err != nil {
		return err
	}
	if err := until(ctx, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is not gone: %v", err)
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Println("ok namespace")
	return nil
}

func deployment(namespace string) *appsv1.Deployment {
	replicas, labels := int32(2), map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

func until(ctx context.Context, holds func() error) error {
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

