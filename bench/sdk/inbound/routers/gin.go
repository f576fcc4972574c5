package routers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/nextfree/pace/reserve/inbound"
)

// Gin has handlers of another type: see [GinMiddleware].
func Gin(limits *inbound.Middleware) http.Handler {
	router := gin.New()
	router.Use(GinMiddleware(limits))
	router.GET("/items/:id", func(c *gin.Context) { item(c.Writer, c.Param("id")) })
	router.GET("/orders/:id", func(c *gin.Context) { item(c.Writer, c.Param("id")) })
	return router
}

// GinMiddleware makes a gin middleware of limits. The next handler of gin is the handler behind the limits; if
// they refuse a request, it has been answered, and gin must not go on.
func GinMiddleware(limits *inbound.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		passed := false
		c.Request.Pattern = c.Request.Method + " " + c.FullPath()
		limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			passed = true
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}
