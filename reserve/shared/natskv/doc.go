// Package natskv keeps limiters in a key-value bucket of NATS JetStream.
//
//	js, err := jetstream.New(conn)
//	...
//	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "limits", TTL: 24 * time.Hour})
//	store, err := natskv.Open(js, "limits")
//	limiter, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(100)))
//
// # What is promised
//
// All processes that open the bucket share one limiter of each name. An update takes three requests: the time of the
// stream's leader, the value, and the new value, which is written only if the revision is unchanged.
//
// Without a connection a request fails at once. If a connection breaks during a write, its permits count as perhaps
// charged: no permit is granted or charged twice. JetStream knows no deadline: a late write is done all the same,
// and the permits of one list of requests are lost.
//
// # The bucket
//
// The server is of version 2.10 or later. The bucket's TTL, if any, must be at least the time in which a limiter
// fills, or requests fail with a *[TTLError]. Without a TTL the bucket keeps one value for each name ever used.
// Names are hashed: no API key is stored. A user needs to publish to $KV.limits.>, $JS.API.STREAM.INFO.KV_limits and
// $JS.API.DIRECT.GET.KV_limits.>, and to subscribe to its inbox.
//
// # How many processes
//
// A process that lost a write waits for a random time, longer the more it loses. Of 2,000 permits a second on one key,
// 8 processes got all and 32 processes 1,300 (two processors, with the server). Above some 30 processes, use Redis.
package natskv
