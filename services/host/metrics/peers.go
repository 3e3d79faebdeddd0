package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Place is a position in a protocol, used as labels of metrics.
type Place struct{ Protocol, Round string }

// peers holds a process's metrics of its peers.
type peers struct {
	bytes   *prometheus.CounterVec
	resumes *prometheus.CounterVec
	up      *prometheus.GaugeVec
	trip    *prometheus.HistogramVec
	blames  *prometheus.CounterVec
}

func newPeers(r *register) *peers {
	return &peers{
		bytes: r.counter(Party, "lodge_peer_bytes_total",
			"Bytes of frames sent to a peer, including resent frames, and of frames received from it.", "protocol", "round", "peer", "direction"),
		resumes: r.counter(Party, "lodge_peer_resumes_total", "Streams to a peer that were resumed after a broken connection.", "peer"),
		up: r.gauge(Both, "lodge_peer_up",
			"1 if the party responds to this process, which polls every few seconds, else 0.", "peer"),
		trip: r.buckets(Both, "lodge_peer_round_trip_seconds", "Round-trip time of the poll of a party.",
			prometheus.ExponentialBuckets(0.0002, 2, 15), "peer"), // 0.2 ms to 3.3 s
		blames: r.counter(Party, "lodge_blames_total",
			"Sessions that ended with a peer named for certain, by the class of the check that it failed.", "peer", "class"),
	}
}

// Peers initialises the series of peers to 0.
func (m *Metrics) Peers(names ...string) {
	if m == nil {
		return
	}
	for _, name := range names {
		m.peers.up.WithLabelValues(name)
		m.peers.resumes.WithLabelValues(name)
		for _, class := range checkClasses {
			m.peers.blames.WithLabelValues(name, class)
		}
	}
}

// Sent counts bytes of frames sent to a peer, including resent frames.
func (m *Metrics) Sent(at Place, peer string, bytes int) {
	if m != nil {
		m.peers.bytes.WithLabelValues(at.Protocol, at.Round, peer, "sent").Add(float64(bytes))
	}
}

// Received counts bytes of frames received from a peer.
func (m *Metrics) Received(at Place, peer string, bytes int) {
	if m != nil {
		m.peers.bytes.WithLabelValues(at.Protocol, at.Round, peer, "received").Add(float64(bytes))
	}
}

// Resumed counts a stream to a peer that was resumed.
func (m *Metrics) Resumed(peer string) {
	if m != nil {
		m.peers.resumes.WithLabelValues(peer).Inc()
	}
}

// Reached sets whether a peer responds. It also observes the round-trip time unless it is 0.
func (m *Metrics) Reached(peer string, up bool, trip time.Duration) {
	if m == nil {
		return
	}
	m.peers.up.WithLabelValues(peer).Set(truth(up))
	if trip > 0 {
		m.peers.trip.WithLabelValues(peer).Observe(trip.Seconds())
	}
}

// Blamed counts a session that ended with a peer named, by the check that it failed.
func (m *Metrics) Blamed(peer, check string) {
	if m != nil {
		m.peers.blames.WithLabelValues(peer, classOf(check)).Inc()
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
