module github.com/nextfree/pace/reserve/plug/paceconnect

go 1.25.0

require (
	connectrpc.com/connect v1.11.0
	github.com/nextfree/pace v0.0.0
	github.com/stretchr/testify v1.8.0
	go.uber.org/goleak v1.2.1
	google.golang.org/genproto/googleapis/rpc v0.0.0-20230822172742-b8732ec3820d
	google.golang.org/protobuf v1.31.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/nextfree/pace => ../../..
