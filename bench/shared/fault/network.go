package main

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// A network is toxiproxy between clients and a server.
type network struct{ proxy *toxiproxy.Proxy }

func newNetwork(to string) (*network, error) {
	s := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &network{toxiproxy.NewProxy(s, "redis", "127.0.0.1:0", to)}
	return n, n.proxy.Start()
}

func (n *network) addr() string { return n.proxy.Listen }

func (n *network) close() { n.proxy.Stop() }

// poison makes the network do what a toxic does, in one direction: "upstream" to the server, or "downstream".
func (n *network) poison(toxic, direction string, attributes map[string]int) error {
	fault := map[string]any{"name": "fault", "type": toxic, "stream": direction, "attributes": attributes}
	text, err := json.Marshal(fault)
	if err != nil {
		return err
	}
	_, err = n.proxy.Toxics.AddToxicJson(bytes.NewReader(text))
	return err
}

// heal ends that.
func (n *network) heal() error { return n.proxy.Toxics.RemoveToxic(context.Background(), "fault") }

// An everyOther toxic lets every other chunk, which is an answer mostly, arrive 0 or 2 times.
type everyOther struct {
	Times int `json:"times"`
	count atomic.Int64
}

// Pipe implements toxics.Toxic.
func (t *everyOther) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			times := 1
			if t.count.Add(1)%2 == 0 {
				times = t.Times
			}
			for range times {
				stub.Output <- &stream.StreamChunk{Data: c.Data, Timestamp: c.Timestamp}
			}
		}
	}
}

func init() { toxics.Register("every_other", &everyOther{}) }
