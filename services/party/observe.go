package party

import (
	"context"
	"time"

	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// Intervals of the store's metrics, and of those that read the whole store.
const (
	observeEvery = 10 * time.Second
	measureEvery = 5 * time.Minute
)

// observe updates the metrics of the store until ctx is done.
func (p *party) observe(ctx context.Context) {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	var measured time.Time
	for {
		reason, err := p.vault.Quarantined()
		p.metrics.SetIf(metrics.StoreQuarantined, reason != "")
		p.metrics.SetIf(metrics.StoreFault, err != nil || p.vault.Healthy() != nil)
		p.metrics.SetIf(metrics.AuditFault, p.audit.Fault() != nil)
		for _, s := range p.disks.Volumes() {
			p.metrics.Disk(s.Name, s.Free, s.Total, s.MinFree, s.Low)
		}
		if time.Since(measured) >= measureEvery {
			p.measure()
			measured = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// measure records the size of the store.
func (p *party) measure() {
	size, err := p.vault.Size()
	if err != nil {
		p.log.Warn("measuring the store", "error", err)
		return
	}
	records, err := p.vault.Kinds()
	if err != nil {
		p.log.Warn("counting the records of the store", "error", err)
		return
	}
	p.metrics.Set(metrics.StoreBytes, float64(size))
	p.metrics.SetAll(metrics.StoreRecords, records)
}
