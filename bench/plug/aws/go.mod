module github.com/nextfree/pace/bench/plug/aws

go 1.25.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.7
	github.com/aws/aws-sdk-go-v2/service/dynamodb v1.73.1
	github.com/nextfree/pace v0.0.0
	github.com/nextfree/pace/bench v0.0.0
	github.com/nextfree/pace/reserve/plug/paceaws v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.24 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/endpoint-discovery v1.13.10 // indirect
	github.com/aws/smithy-go v1.28.8 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/nextfree/pace => ../../..

replace github.com/nextfree/pace/bench => ../..

replace github.com/nextfree/pace/reserve/plug/paceaws => ../../../reserve/plug/paceaws
