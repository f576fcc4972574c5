package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
	"github.com/nextfree/pace/reserve/plug/pacek8s"
)

// configMaps is the part of an API server that a manager of config maps needs: list, watch and get.
func configMaps(n int) http.Handler {
	list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	list.ResourceVersion = "1"
	for i := range n {
		c := corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
		c.Namespace, c.Name, c.ResourceVersion = "default", fmt.Sprint("c", i), "1"
		list.Items = append(list.Items, c)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("watch") == "" {
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // nothing changes
	})
	mux.HandleFunc("GET /api/v1/namespaces/default/configmaps/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, c := range list.Items {
			if c.Name == r.PathValue("name") {
				_ = json.NewEncoder(w).Encode(c)
			}
		}
	})
	return mux
}

// A controller of a controller-runtime manager, with pace's limiter for its workqueue and another one
// for its client, in front of an API server over HTTP: each item fails three times, and all that
// were put off are reconciled again, at no more than the rate.
func TestManager(t *testing.T) {
	const items, failures, rate, qps = 20, 3, 50, 200
	calls := reserve.Must(pacetest.New(pacetest.Unlimited(), pacetest.WithHandler(configMaps(items))))
	api := httptest.NewServer(calls)
	defer api.Close()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	client, err := pacek8s.NewRateLimiter(reserve.Must(pace.NewTokenBucket(qps, 1)))
	require.NoError(t, err)
	manager, err := ctrl.NewManager(&rest.Config{Host: api.URL, RateLimiter: client}, ctrl.Options{
		Scheme:  scheme,
		Logger:  logr.Discard(),
		Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	require.NoError(t, err)

	limiter := reserve.Must(pace.NewTokenBucket(rate, 1))
	overall, err := pacek8s.NewQueueLimiter[reconcile.Request](limiter, nil)
	require.NoError(t, err)
	var mu sync.Mutex
	seen := map[reconcile.Request]int{}
	var again pacetest.Times
	done := make(chan struct{})
	reconciler := reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var c corev1.ConfigMap
		if err := manager.GetAPIReader().Get(ctx, r.NamespacedName, &c); err != nil {
			return reconcile.Result{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		seen[r]++
		if seen[r] > 1 {
			again.Note()
		}
		if len(again.All()) == items*failures {
			close(done)
		}
		if seen[r] <= failures {
			return reconcile.Result{}, fmt.Errorf("%s fails", c.Name)
		}
		return reconcile.Result{}, nil
	})
	require.NoError(t, ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 8,
			RateLimiter:             workqueue.TypedRateLimiter[reconcile.Request](overall),
		}).Complete(reconciler))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	begin := time.Now()
	go func() { ended <- manager.Start(ctx) }()
	select {
	case <-done:
	case err := <-ended:
		t.Fatal("the manager ended: ", err)
	case <-time.After(time.Minute):
		t.Fatalf("%d of %d were reconciled again", len(again.All()), items*failures)
	}
	took := time.Since(begin)
	stop()
	require.NoError(t, <-ended)
	require.Len(t, seen, items)
	for r, n := range seen {
		require.Equal(t, 1+failures, n, r)
	}
	require.GreaterOrEqual(t, took, time.Duration(items*failures-1)*time.Second/rate, "none earlier than the rate allows")
	require.Zero(t, limiter.Snapshot().Waiting)
	require.EqualValues(t, items*failures, limiter.Snapshot().Granted)
	require.GreaterOrEqual(t, len(calls.Accepted()), items*(1+failures)+2, "and a list and a watch")
	t.Logf("%d retries and %d calls in %v", len(again.All()), len(calls.Accepted()), took)
}
