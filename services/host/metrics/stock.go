package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// OtherTenants replaces the tenants that no client of the configuration acts for.
const OtherTenants = "other"

// maxStockLabels limits the series of the stock; further series are dropped.
const maxStockLabels = 1000

// StockLabels identifies a stock.
type StockLabels struct{ Tenant, Kind, Field, Params string }

// StockLevel is the stock of all classes with these labels, in tuples.
type StockLevel struct {
	StockLabels
	Available, Reserved, Consumed, Lost, InProduction uint64

	// For the policies that are not paused: the sums of their marks, the smallest share of its low
	// mark that a policy has in stock, and the number of policies that are held back. High is 0 if
	// there is no policy.
	Low, High uint64
	Ratio     float64
	Held      int

	// TimeToEmpty is that of the class that is empty first; the longest duration means never.
	TimeToEmpty time.Duration
}

// MaskLevel is the number of masks that a quorum can spend.
type MaskLevel struct {
	Epoch  uint64
	Quorum []uint32 // indices in the roster
	Form   string
	Free   uint64
}

// labels returns the labels of the gauge.
func (l *MaskLevel) labels() []string {
	quorum := make([]string, len(l.Quorum))
	for i, p := range l.Quorum {
		quorum[i] = strconv.FormatUint(uint64(p), 10)
	}
	return []string{strconv.FormatUint(l.Epoch, 10), strings.Join(quorum, ","), l.Form}
}

// stock collects the levels that were set last, which change atomically.
type stock struct {
	tuples, empty, low, high, ratio, held, masks *prometheus.Desc
	levels                                       chan stockLevels // holds one value
}

// stockLevels holds the levels of tuples and masks, by their labels, and of the masks of each
// quorum.
type stockLevels struct {
	all   []StockLevel
	masks []MaskLevel
}

func newStock(r *register) *stock {
	labels := []string{"tenant", "kind", "field", "params"}
	s := &stock{
		tuples: r.desc(Coordinator, "lodge_stock_tuples", "Tuples at all parties, by their state.", append(slices.Clone(labels), "state")...),
		empty: r.desc(Coordinator, "lodge_stock_time_to_empty_seconds",
			"Time until the class that is empty first has no tuples left, at the recent rates; +Inf for never.", labels...),
		low: r.desc(Coordinator, "lodge_stock_low_watermark_tuples",
			"Level below which policies make more tuples: the sum over the policies of these labels that are not paused.", labels...),
		high: r.desc(Coordinator, "lodge_stock_high_watermark_tuples", "Level up to which policies make more tuples: the sum over the same policies.", labels...),
		ratio: r.desc(Coordinator, "lodge_stock_low_watermark_ratio",
			"Available tuples divided by the low mark, for the policy with the smallest ratio; below 1 means that a stock is low.", labels...),
		held:   r.desc(Coordinator, "lodge_stock_policies_held", "Policies of these labels that make no tuples although the stock is low.", labels...),
		masks:  r.desc(Coordinator, "lodge_stock_masks", "Masks that a quorum can spend.", "epoch", "quorum", "form"),
		levels: make(chan stockLevels, 1),
	}
	s.levels <- stockLevels{}
	r.collector(Coordinator, s)
	return s
}

func (s *stock) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.tuples, s.empty, s.low, s.high, s.ratio, s.held, s.masks} {
		c <- d
	}
}

func (s *stock) Collect(c chan<- prometheus.Metric) {
	levels := <-s.levels
	s.levels <- levels
	for _, l := range levels.masks {
		c <- prometheus.MustNewConstMetric(s.masks, prometheus.GaugeValue, float64(l.Free), l.labels()...)
	}
	for _, l := range levels.all {
		gauge := func(d *prometheus.Desc, value float64, more ...string) {
			c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{l.Tenant, l.Kind, l.Field, l.Params}, more...)...)
		}
		gauge(s.tuples, float64(l.Available), "available")
		gauge(s.tuples, float64(l.Reserved), "reserved")
		gauge(s.tuples, float64(l.Consumed), "consumed")
		gauge(s.tuples, float64(l.Lost), "lost")
		gauge(s.tuples, float64(l.InProduction), "in_production")
		seconds := l.TimeToEmpty.Seconds()
		if l.TimeToEmpty == math.MaxInt64 {
			seconds = math.Inf(1)
		}
		gauge(s.empty, seconds)
		if l.High > 0 {
			gauge(s.low, float64(l.Low))
			gauge(s.high, float64(l.High))
			gauge(s.ratio, l.Ratio)
			gauge(s.held, float64(l.Held))
		}
	}
}

// Stock sets the levels, with one level of masks for each quorum, form and epoch.
func (m *Metrics) Stock(levels []StockLevel, masks ...MaskLevel) {
	if m == nil {
		return
	}
	<-m.stock.levels
	m.stock.levels <- stockLevels{levels[:min(len(levels), maxStockLabels)], masks[:min(len(masks), maxStockLabels)]}
}

// Reservation counts an attempt to reserve, by outcome: "reserved" or an error code. The time is
// observed only for attempts that did not wait for stock.
func (m *Metrics) Reservation(outcome string, took time.Duration, waited bool) {
	if m == nil {
		return
	}
	m.reservations.WithLabelValues(outcome).Inc()
	if !waited {
		m.reservationTime.WithLabelValues().Observe(took.Seconds())
	}
}

// ReservationRefused counts a reservation that was refused because of a limit: open, tuples, share,
// lease or rate.
func (m *Metrics) ReservationRefused(limit string) {
	if m != nil {
		m.reservationsRefused.WithLabelValues(limit).Inc()
	}
}

// OpenReservations sets how many open reservations each client holds.
func (m *Metrics) OpenReservations(clients map[string]int) {
	if m == nil {
		return
	}
	for client, n := range clients {
		m.reservationsOpen.WithLabelValues(client).Set(float64(n))
	}
}
