module github.com/nextfree/pace/reserve/plug/paceaws

go 1.25.0

require (
	github.com/aws/aws-sdk-go-v2 v1.30.0
	github.com/aws/aws-sdk-go-v2/service/dynamodb v1.33.0
	github.com/aws/smithy-go v1.20.2
	github.com/nextfree/pace v0.0.0
	github.com/stretchr/testify v1.9.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.3.11 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.6.11 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.11.2 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/endpoint-discovery v1.9.12 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/jmespath/go-jmespath v0.4.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/nextfree/pace => ../../..
