package routers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/bench/sdk/inbound/routers"
	"github.com/nextfree/pace/reserve/inbound"
)

// In every router: two requests for each client and route, three for each route, whatever the path; a refusal
// is answered in full, and the handler does not run.
func TestRouters(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	for name, build := range map[string]func(*inbound.Middleware) http.Handler{
		"chi": routers.Chi, "gin": routers.Gin, "echo": routers.Echo,
	} {
		t.Run(name, func(t *testing.T) {
			limits, err := routers.Limits()
			require.NoError(t, err)
			h := build(limits)
			send := func(client, path string) *httptest.ResponseRecorder {
				r := httptest.NewRequest("GET", path, nil)
				r.RemoteAddr = client + ":1"
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			for i, c := range []struct {
				client, path string
				by           string // which tier refuses
			}{
				{"203.0.113.1", "/items/1", ""},
				{"203.0.113.1", "/items/2", ""},
				{"203.0.113.1", "/items/3", `"client-route"`},
				{"203.0.113.1", "/orders/4", ""},
				{"203.0.113.2", "/items/5", ""},
				{"203.0.113.2", "/items/6", `"route"`},
				{"203.0.113.2", "/orders/7", ""},
			} {
				w := send(c.client, c.path)
				if c.by == "" {
					require.Equal(t, 200, w.Code, i)
					require.Equal(t, fmt.Sprintf("item %d\n", i+1), w.Body.String())
					require.NotEmpty(t, w.Header().Get("RateLimit"))
					continue
				}
				require.Equal(t, 429, w.Code, i)
				require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
				require.Contains(t, w.Body.String(), fmt.Sprintf(`"violated-policies":[%s]}`, c.by))
				require.NotContains(t, w.Body.String(), "item")
				require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
				require.NotEmpty(t, w.Header().Get("Retry-After"))
			}
		})
	}
}
