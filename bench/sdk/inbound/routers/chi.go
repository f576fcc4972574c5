package routers

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/nextfree/pace/reserve/inbound"
)

// Chi has the middleware inside of the routes, by With: around them, by Use, it would come before the route is known.
func Chi(limits *inbound.Middleware) http.Handler {
	router := chi.NewRouter()
	limited := router.With(limits.Handler)
	limited.Get("/items/{id}", func(w http.ResponseWriter, r *http.Request) { item(w, chi.URLParam(r, "id")) })
	limited.Get("/orders/{id}", func(w http.ResponseWriter, r *http.Request) { item(w, chi.URLParam(r, "id")) })
	return router
}
