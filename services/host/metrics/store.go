package metrics

import "github.com/prometheus/client_golang/prometheus"

// store holds the metrics of a process's storage.
type store struct {
	bytes, quarantined, fault prometheus.Gauge
	records                   *prometheus.GaugeVec
	free, size                *prometheus.GaugeVec
	least, low                *prometheus.GaugeVec
	audit                     prometheus.Gauge
}

func newStore(r *register) *store {
	gauge := func(name, help string) prometheus.Gauge { return r.gauge(Party, name, help).WithLabelValues() }
	return &store{
		bytes:       gauge("lodge_store_bytes", "Size of the party's store: files of the embedded store, or the PostgreSQL database."),
		quarantined: gauge("lodge_store_quarantined", "1 while the store is in quarantine, else 0."),
		fault:       gauge("lodge_store_fault", "1 while writing to the store is not possible, else 0."),
		records:     r.gauge(Party, "lodge_store_records", "Records in the store, by kind.", "kind"),
		free: r.gauge(Both, "lodge_disk_free_bytes",
			"Free space on the file system of the `store` (where it is embedded), the `audit` log, or the coordinator's `data`.", "volume"),
		size:  r.gauge(Both, "lodge_disk_size_bytes", "Size of the same file system.", "volume"),
		least: r.gauge(Both, "lodge_disk_min_free_bytes", "Minimum free space on the same file system, below which the process refuses new work.", "volume"),
		low:   r.gauge(Both, "lodge_disk_low", "1 while the process refuses new work because the same file system has too little free space, else 0.", "volume"),
		audit: gauge("lodge_audit_fault", "1 while writing to the audit log is not possible, else 0."),
	}
}

// Store sets the state of a party's store.
func (m *Metrics) Store(quarantined, fault bool) {
	if m != nil {
		m.store.quarantined.Set(truth(quarantined))
		m.store.fault.Set(truth(fault))
	}
}

// StoreSize sets the size of a party's store, and the number of its records by kind.
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

// Disk sets the space on the file system of a volume, in bytes, and whether the process refuses new
// work because of it.
func (m *Metrics) Disk(volume string, free, size, least uint64, low bool) {
	if m != nil {
		m.store.free.WithLabelValues(volume).Set(float64(free))
		m.store.size.WithLabelValues(volume).Set(float64(size))
		m.store.least.WithLabelValues(volume).Set(float64(least))
		m.store.low.WithLabelValues(volume).Set(truth(low))
	}
}

// AuditFault sets whether writing to the audit log is not possible.
func (m *Metrics) AuditFault(fault bool) {
	if m != nil {
		m.store.audit.Set(truth(fault))
	}
}
