module github.com/nextfree/pace/bench/shared

go 1.25.0

require (
	github.com/Shopify/toxiproxy/v2 v2.5.0
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/lib/pq v1.12.3
	github.com/nats-io/nats-server/v2 v2.11.8
	github.com/nats-io/nats.go v1.44.0
	github.com/nextfree/pace v0.0.0
	github.com/nextfree/pace/bench v0.0.0
	github.com/nextfree/pace/reserve/shared/goredis v0.0.0
	github.com/nextfree/pace/reserve/shared/natskv v0.0.0
	github.com/nextfree/pace/reserve/shared/postgres v0.0.0
	github.com/redis/go-redis/v9 v9.22.0
	github.com/rs/zerolog v1.35.1
	github.com/stretchr/testify v1.12.1
	github.com/throttled/throttled/v2 v2.15.0
)

require (
	github.com/klauspost/compress v1.18.6 // indirect
	github.com/rogpeppe/go-internal v1.14.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/go-tpm v0.9.5 // indirect
	github.com/gorilla/mux v1.8.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/minio/highwayhash v1.0.3 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/nats-io/jwt/v2 v2.7.4 // indirect
	github.com/nats-io/nkeys v0.4.11 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/prometheus/client_golang v1.23.2 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.66.1 // indirect
	github.com/prometheus/procfs v0.16.1 // indirect
	github.com/rs/xid v1.6.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/crypto v0.41.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
	gopkg.in/tomb.v1 v1.0.0-20141024135613-dd632973f1e7 // indirect
)

replace github.com/nextfree/pace => ../..

replace github.com/nextfree/pace/reserve/shared/goredis => ../../reserve/shared/goredis

replace github.com/nextfree/pace/reserve/shared/natskv => ../../reserve/shared/natskv

replace github.com/nextfree/pace/reserve/shared/postgres => ../../reserve/shared/postgres

replace github.com/nextfree/pace/bench => ..

replace github.com/nextfree/pace/reserve/plug/xtime => ../../reserve/plug/xtime
