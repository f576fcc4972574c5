package routers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/nextfree/pace/reserve/inbound"
)

// Echo wraps the middleware itself. The route is known in Use, but not in Pre.
func Echo(limits *inbound.Middleware) http.Handler {
	router := echo.New()
	router.Use(echoPattern, echo.WrapMiddleware(limits.Handler))
	router.GET("/items/:id", echoItem)
	router.GET("/orders/:id", echoItem)
	return router
}

// echoPattern tells the request its route.
func echoPattern(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		r.Pattern = r.Method + " " + c.Path()
		return next(c)
	}
}

func echoItem(c echo.Context) error {
	item(c.Response(), c.Param("id"))
	return nil
}
