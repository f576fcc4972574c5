module github.com/nextfree/pace/reserve/shared/postgres

go 1.25.0

require (
	github.com/lib/pq v1.12.3
	github.com/nextfree/pace v0.0.0
	github.com/stretchr/testify v1.8.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/nextfree/pace => ../../..
