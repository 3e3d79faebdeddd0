package metrics

import "github.com/prometheus/client_golang/prometheus"

// store is where a process keeps things.
type store struct {
	bytes, quarantined, fault prometheus.Gauge
	records                   *prometheus.GaugeVec
	free, size                *prometheus.GaugeVec
}

func newStore(r *register) *store {
	gauge := func(name, help string) prometheus.Gauge { return r.gauge(Party, name, help).WithLabelValues() }
	return &store{
		bytes:       gauge("lodge_store_bytes", "What the party's store takes: files of the embedded one, or the PostgreSQL database."),
		quarantined: gauge("lodge_store_quarantined", "1 while the store is in quarantine, else 0."),
		fault:       gauge("lodge_store_fault", "1 while nothing may be written to the store, else 0."),
		records:     r.gauge(Party, "lodge_store_records", "Records in the store, by kind.", "kind"),
		free: r.gauge(Both, "lodge_disk_free_bytes",
			"Free on the file system of the `store` (where it is embedded), the `audit` log, or the coordinator's `data`.", "volume"),
		size: r.gauge(Both, "lodge_disk_size_bytes", "Size of the same file system.", "volume"),
	}
}

// Store sets how a party's store is.
func (m *Metrics) Store(quarantined, fault bool) {
	if m != nil {
		m.store.quarantined.Set(truth(quarantined))
		m.store.fault.Set(truth(fault))
	}
}

// StoreSize sets what a party's store takes, and its records by kind.
func (m *Metrics) StoreSize(bytes int64, records map[string]int) {
	if m == nil {
		return
	}
	m.store.bytes.Set(float64(bytes))
	m.store.records.Reset()
	for kind, n := range records {
		m.store.records.WithLabelValues(kind).Set(float64(n))
	}
}

// Disk sets the room on the file system of a volume.
func (m *Metrics) Disk(volume string, free, size uint64) {
	if m != nil {
		m.store.free.WithLabelValues(volume).Set(float64(free))
		m.store.size.WithLabelValues(volume).Set(float64(size))
	}
}
