package metrics

import (
	"math"
	"strconv"
	"strings"
	"time"
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

// Metrics of the stock.
var (
	stockTuples = level(Coordinator, "lodge_stock_tuples", "Tuples at all parties, by their state.", "tenant", "kind", "field", "params", "state")
	stockEmpty  = stockLevel("lodge_stock_time_to_empty_seconds",
		"Time until the class that is empty first has no tuples left, at the recent rates; +Inf for never.")
	stockLow = stockLevel("lodge_stock_low_watermark_tuples",
		"Level below which policies make more tuples: the sum over the policies of these labels that are not paused.")
	stockHigh  = stockLevel("lodge_stock_high_watermark_tuples", "Level up to which policies make more tuples: the sum over the same policies.")
	stockRatio = stockLevel("lodge_stock_low_watermark_ratio",
		"Available tuples divided by the low mark, for the policy with the smallest ratio; below 1 means that a stock is low.")
	stockHeld  = stockLevel("lodge_stock_policies_held", "Policies of these labels that make no tuples although the stock is low.")
	stockMasks = level(Coordinator, "lodge_stock_masks", "Masks that a quorum can spend.", "epoch", "quorum", "form")

	stockMetrics = []Level{stockTuples, stockEmpty, stockLow, stockHigh, stockRatio, stockHeld, stockMasks}
)

func stockLevel(name, help string) Level {
	return level(Coordinator, name, help, "tenant", "kind", "field", "params")
}

// stock holds the levels of tuples and masks, by their labels, and of the masks of each quorum.
type stock struct {
	all   []StockLevel
	masks []MaskLevel
}

func (s *stock) read(set SetLevel) {
	for _, l := range s.masks {
		set(stockMasks, float64(l.Free), l.labels()...)
	}
	for _, l := range s.all {
		of := []string{l.Tenant, l.Kind, l.Field, l.Params}
		for state, n := range map[string]uint64{
			"available": l.Available, "reserved": l.Reserved, "consumed": l.Consumed, "lost": l.Lost, "in_production": l.InProduction,
		} {
			set(stockTuples, float64(n), append(of[:4:4], state)...)
		}
		seconds := l.TimeToEmpty.Seconds()
		if l.TimeToEmpty == math.MaxInt64 {
			seconds = math.Inf(1)
		}
		set(stockEmpty, seconds, of...)
		if l.High > 0 {
			set(stockLow, float64(l.Low), of...)
			set(stockHigh, float64(l.High), of...)
			set(stockRatio, l.Ratio, of...)
			set(stockHeld, float64(l.Held), of...)
		}
	}
}

// Stock sets the levels, with one level of masks for each quorum, form and epoch.
func (m *Metrics) Stock(levels []StockLevel, masks ...MaskLevel) {
	if m != nil {
		m.stock.Store(&stock{levels[:min(len(levels), maxStockLabels)], masks[:min(len(masks), maxStockLabels)]})
	}
}
