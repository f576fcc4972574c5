// What the analyzers look at: the real limiters, and stand-ins of three other modules.
module example.com/testdata

go 1.25.0

require (
	github.com/gin-gonic/gin v1.0.0
	github.com/nextfree/pace v0.0.0
	github.com/nextfree/pace/reserve/plug/xtime v0.0.0
	golang.org/x/time v0.14.0
	google.golang.org/grpc v1.0.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
)

replace (
	github.com/gin-gonic/gin => ./stub/gin
	github.com/nextfree/pace => ../../../..
	github.com/nextfree/pace/reserve/plug/xtime => ../../xtime
	google.golang.org/grpc => ./stub/grpc
)
