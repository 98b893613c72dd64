// An operator's suite, as controller-runtime's envtest runs it: definitions in two versions, a controller, and webhooks that
// default, validate and convert. It prints `ok NAME` for each step, and how long the control plane took to start.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	v1 = schema.GroupVersion{Group: "shop.test", Version: "v1"}
	v2 = schema.GroupVersion{Group: "shop.test", Version: "v2"}
)

// Shop is what is stored; its spec names an owner.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShopSpec `json:"spec,omitempty"`
}

type ShopSpec struct {
	Owner string `json:"owner,omitempty"`
	Size  int    `json:"size,omitempty"`
}

type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}

// OldShop is v1, in which the owner was a keeper.
type OldShop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldSpec `json:"spec,omitempty"`
}

type OldSpec struct {
	Keeper string `json:"keeper,omitempty"`
	Size   int    `json:"size,omitempty"`
}

func (s *Shop) DeepCopyObject() runtime.Object {
	made := *s
	s.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

func (s *OldShop) DeepCopyObject() runtime.Object {
	made := *s
	s.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

func (l *ShopList) DeepCopyObject() runtime.Object {
	made := *l
	made.Items = nil
	for index := range l.Items {
		made.Items = append(made.Items, *l.Items[index].DeepCopyObject().(*Shop))
	}
	return &made
}

func (*Shop) Hub() {}

func (s *OldShop) ConvertTo(hub conversion.Hub) error {
	shop := hub.(*Shop)
	shop.ObjectMeta = s.ObjectMeta
	shop.Spec = ShopSpec{Owner: s.Spec.Keeper, Size: s.Spec.Size}
	return nil
}

func (s *OldShop) ConvertFrom(hub conversion.Hub) error {
	shop := hub.(*Shop)
	s.ObjectMeta = shop.ObjectMeta
	s.Spec = OldSpec{Keeper: shop.Spec.Owner, Size: shop.Spec.Size}
	return nil
}

type admissions struct{}

func (admissions) Default(_ context.Context, shop *Shop) error {
	if shop.Spec.Size == 0 {
		shop.Spec.Size = 7
	}
	return nil
}

func (admissions) ValidateCreate(_ context.Context, shop *Shop) (admission.Warnings, error) {
	if shop.Spec.Owner == "nobody" {
		return nil, fmt.Errorf("somebody has to own it")
	}
	return nil, nil
}

func (a admissions) ValidateUpdate(ctx context.Context, _, shop *Shop) (admission.Warnings, error) {
	return a.ValidateCreate(ctx, shop)
}

func (admissions) ValidateDelete(context.Context, *Shop) (admission.Warnings, error) { return nil, nil }

// reconciler keeps a Secret with the name of each shop's owner.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	shop := &Shop{}
	if err := r.Get(ctx, request.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: shop.Name, Namespace: shop.Namespace}}
	_, err := ctrl.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.StringData = map[string]string{"owner": shop.Spec.Owner}
		return ctrl.SetControllerReference(shop, secret, r.Scheme())
	})
	return ctrl.Result{}, err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL", err)
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	scheme.AddKnownTypeWithName(v2.WithKind("Shop"), &Shop{})
	scheme.AddKnownTypeWithName(v2.WithKind("ShopList"), &ShopList{})
	scheme.AddKnownTypeWithName(v1.WithKind("Shop"), &OldShop{})
	metav1.AddToGroupVersion(scheme, v1)
	metav1.AddToGroupVersion(scheme, v2)

	environment := &envtest.Environment{
		Scheme:                scheme,
		CRDInstallOptions:     envtest.CRDInstallOptions{Paths: []string{os.Args[1]}, Scheme: scheme},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{os.Args[2]}},
		ErrorIfCRDPathMissing: true,
	}
	began := time.Now()
	config, err := environment.Start()
	if err != nil {
		return err
	}
	defer func() { _ = environment.Stop() }()
	fmt.Printf("ok start %.2f\n", time.Since(began).Seconds())

	options := environment.WebhookInstallOptions
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		}),
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&Shop{}).Owns(&corev1.Secret{}).
		Complete(&reconciler{manager.GetClient()}); err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(manager, &Shop{}).WithDefaulter(admissions{}).WithValidator(admissions{}).
		Complete(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	if err := until(ctx, func() error { return manager.GetWebhookServer().StartedChecker()(nil) }); err != nil {
		return err
	}
	err = check(ctx, config2client(manager, scheme))
	cancel()
	if stopped := <-ended; err == nil {
		err = stopped
	}
	return err
}

func config2client(manager ctrl.Manager, scheme *runtime.Scheme) client.Client {
	made, err := client.New(manager.GetConfig(), client.Options{Scheme: scheme})
	if err != nil {
		panic(err)
	}
	return made
}

func check(ctx context.Context, shops client.Client) error {
	old := &OldShop{ObjectMeta: metav1.ObjectMeta{Name: "corner", Namespace: "default"}, Spec: OldSpec{Keeper: "ann"}}
	if err := shops.Create(ctx, old); err != nil {
		return err
	}
	shop := &Shop{}
	if err := shops.Get(ctx, client.ObjectKeyFromObject(old), shop); err != nil {
		return err
	}
	if shop.Spec.Owner != "ann" || shop.Spec.Size != 7 {
		return fmt.Errorf("converted and defaulted: %+v", shop.Spec)
	}
	fmt.Println("ok convert\nok default")
	refused := &Shop{ObjectMeta: metav1.ObjectMeta{Name: "empty", Namespace: "default"}, Spec: ShopSpec{Owner: "nobody"}}
	if err := shops.Create(ctx, refused); !apierrors.IsForbidden(err) {
		return fmt.Errorf("validated: %v", err)
	}
	fmt.Println("ok validate")
	secret := &corev1.Secret{}
	err := until(ctx, func() error { return shops.Get(ctx, client.ObjectKeyFromObject(shop), secret) })
	if err != nil || string(secret.Data["owner"]) != "ann" {
		return fmt.Errorf("reconciled: %v %v", secret.Data, err)
	}
	fmt.Println("ok reconcile")
	return nil
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
		case <-time.After(20 * time.Millisecond):
		}
	}
}
