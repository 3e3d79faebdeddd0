//go:build dashboards

package dashboards

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pictures of dashboards for the documentation: the same queries and layout in a simple style,
// which differs from Grafana's.

const (
	columnWidth = 50 // width of one of the 24 columns, in pixels
	rowHeight   = 30
	titleHeight = 26
	headHeight  = 44
	moments     = 110 // points of a time series
)

var (
	palette = []string{"#3b7dd8", "#d9822b", "#2e9e6b", "#b5459c", "#8a6d3b", "#5b5fc7", "#c0392b", "#1a9aa0", "#7f8c3a", "#7a7a7a"}
	colors  = map[string]string{"green": "#2e9e6b", "orange": "#d9822b", "red": "#c0392b"}
)

// canvas is a partially written SVG.
type canvas struct {
	bytes.Buffer
	from, to float64 // range of the time axes
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.Buffer, format+"\n", args...) }

// text writes text at a baseline; anchor is start, middle or end.
func (c *canvas) text(x, y float64, size int, anchor, fill, text string) {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // writing to a buffer cannot fail
	c.add(`<text x="%.0f" y="%.0f" font-size="%d" text-anchor="%s" fill="%s">%s</text>`, x, y, size, anchor, fill, b.String())
}

func (c *canvas) rect(x, y, w, h float64, fill string) {
	c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y, max(w, 0), max(h, 0), fill)
}

// named is a series with its name in the legend.
type named struct {
	name string
	series
}

func (s named) last() float64 {
	if len(s.points) == 0 {
		return math.NaN()
	}
	return s.points[len(s.points)-1].value
}

// draws returns the picture of a dashboard.
func (c *cluster) draws(b board) []byte {
	height := 0
	for _, p := range b.Panels {
		height = max(height, p.GridPos.Y+p.GridPos.H)
	}
	out := &canvas{from: float64(c.since.UnixMilli()) / 1000, to: float64(time.Now().UnixMilli()) / 1000}
	width, total := 24*columnWidth, headHeight+height*rowHeight+8
	out.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="DejaVu Sans, Verdana, sans-serif">`, width, total)
	out.rect(0, 0, float64(width), float64(total), "#f2f3f5")
	out.text(14, 29, 18, "start", "#222", b.Title)
	for i, p := range b.Panels {
		at := p.GridPos
		x, y := float64(at.X*columnWidth)+5, float64(headHeight+at.Y*rowHeight)+4
		w, h := float64(at.W*columnWidth)-10, float64(at.H*rowHeight)-8
		out.add(`<clipPath id="c%d"><rect x="%.0f" y="%.0f" width="%.0f" height="%.0f"/></clipPath><g clip-path="url(#c%d)">`, i, x, y, w, h, i)
		out.rect(x, y, w, h, "#fff")
		out.text(x+10, y+18, 12, "start", "#333", p.Title)
		c.panel(out, p, b.one(), x+10, y+titleHeight, w-20, h-titleHeight-8)
		out.add("</g>")
	}
	out.add("</svg>")
	return out.Bytes()
}

// panel draws a panel into a box.
func (c *cluster) panel(out *canvas, p boardPanel, one map[string]string, x, y, w, h float64) {
	var list []named
	for _, q := range p.Targets {
		found := []series(nil)
		if q.Instant {
			found = c.chosen(q.Expr, one)
		} else {
			found = c.over(q.Expr, moments, one)
		}
		for _, s := range found {
			name := regexp.MustCompile(`{{(\w+)}}`).ReplaceAllStringFunc(q.LegendFormat, func(l string) string { return s.labels[strings.Trim(l, "{}")] })
			list = append(list, named{name, s})
		}
	}
	if p.Type != "bargauge" {
		slices.SortStableFunc(list, func(a, b named) int { return compareNames(a.name, b.name) })
	}
	switch p.Type {
	case "stat":
		p.stat(out, list, x, y, w, h)
	case "bargauge":
		p.bars(out, list, x, y, w, h)
	case "heatmap":
		p.heat(out, list, x, y, w, h)
	case "state-timeline":
		p.states(out, list, x, y, w, h)
	default:
		p.lines(out, list, x, y, w, h)
	}
}

// compareNames sorts numbers numerically, with +Inf last.
func compareNames(a, b string) int {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	if errA == nil && errB == nil {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a, b)
}

// color returns the colour of a value by the panel's steps, or the fallback if there are no steps.
func (p boardPanel) color(v float64, fallback string) string {
	for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
		if s.Value == nil || v >= *s.Value {
			fallback = colors[s.Color]
		}
	}
	return fallback
}

func (p boardPanel) format(v float64) string { return format(v, p.FieldConfig.Defaults.Unit) }

// format formats a value in a Grafana unit.
func format(v float64, unit string) string {
	scaled := func(v, base float64, suffixes ...string) string {
		i := 0
		for math.Abs(v) >= base && i < len(suffixes)-1 {
			v, i = v/base, i+1
		}
		return strings.TrimSpace(strconv.FormatFloat(v, 'g', 3, 64) + suffixes[i])
	}
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return "never"
	case unit == "percentunit":
		return fmt.Sprintf("%.0f%%", 100*v)
	case unit == "bytes":
		return scaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB")
	case unit == "Bps":
		return scaled(v, 1000, " B/s", " kB/s", " MB/s", " GB/s")
	case unit == "s" && v >= 2*86400:
		return fmt.Sprintf("%.0f days", v/86400)
	case unit == "s" && v >= 7200:
		return fmt.Sprintf("%.1f h", v/3600)
	case unit == "s" && v >= 120:
		return fmt.Sprintf("%.1f min", v/60)
	case unit == "s" && v < 1 && v > 0:
		return strconv.FormatFloat(v*1000, 'g', 3, 64) + " ms"
	case unit == "s":
		return strconv.FormatFloat(v, 'g', 3, 64) + " s"
	case unit == "reqps":
		return strconv.FormatFloat(v, 'g', 3, 64) + "/s"
	}
	return scaled(math.Round(v*1000)/1000, 1000, "", "k", "M", "G")
}

func (p boardPanel) stat(out *canvas, list []named, x, y, w, h float64) {
	width := w / float64(max(1, len(list)))
	for i, s := range list {
		middle := x + (float64(i)+0.5)*width
		size := 26
		if len(list) > 3 {
			size = 18
		}
		out.text(middle, y+h/2+9, size, "middle", p.color(s.last(), "#333"), p.format(s.last()))
		out.text(middle, y+h-1, 10, "middle", "#666", s.name)
	}
}

func (p boardPanel) bars(out *canvas, list []named, x, y, w, h float64) {
	list = slices.DeleteFunc(list, func(s named) bool { return math.IsInf(s.last(), 0) || math.IsNaN(s.last()) })
	if len(list) > 1 && len(p.Targets) == 1 {
		slices.SortStableFunc(list, func(a, b named) int { return cmp.Compare(b.last(), a.last()) })
	}
	most := p.FieldConfig.Defaults.Max
	for _, s := range list {
		if p.FieldConfig.Defaults.Max == 0 {
			most = max(most, s.last())
		}
	}
	if len(list) == 0 {
		out.text(x+w/2, y+h/2, 12, "middle", "#666", "nothing to show")
		return
	}
	row := min(h/float64(len(list)), 26)
	name := w * 0.5
	for i, s := range list {
		top := y + float64(i)*row
		label := s.name
		if room := int(name / 6.1); len(label) > room {
			label = "…" + label[len(label)-room+1:]
		}
		out.text(x+name-8, top+row/2+4, 10, "end", "#444", label)
		out.rect(x+name, top+row*0.2, w-name-62, row*0.6, "#eceef1")
		if most > 0 {
			out.rect(x+name, top+row*0.2, (w-name-62)*min(1, s.last()/most), row*0.6, p.color(s.last(), palette[0]))
		}
		out.text(x+w, top+row/2+4, 10, "end", p.color(s.last(), "#333"), p.format(s.last()))
	}
}

// ceiling returns a round number in the panel's unit that is at least v.
func (p boardPanel) ceiling(v float64) float64 {
	if v <= 0 || math.IsNaN(v) {
		return 1
	}
	if p.FieldConfig.Defaults.Unit == "bytes" {
		base := math.Pow(1024, math.Floor(math.Log(v)/math.Log(1024)))
		for m := 4.0; ; m *= 2 {
			if v <= m*base {
				return m * base
			}
		}
	}
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 6, 8, 10} {
		if v <= m*base {
			return m * base
		}
	}
	return v
}

// times draws the time axis.
func times(out *canvas, from, to, x, w, y float64) {
	for i := range 5 {
		part := float64(i) / 4
		label := fmt.Sprintf("%.0f s", part*(to-from))
		if to-from >= 120 {
			label = fmt.Sprintf("%.1f min", part*(to-from)/60)
		}
		anchor := []string{"start", "middle", "middle", "middle", "end"}[i]
		out.text(x+part*w, y, 9, anchor, "#888", label)
	}
}

func (p boardPanel) lines(out *canvas, list []named, x, y, w, h float64) {
	from, to := out.from, out.to
	stacked := p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	sums := map[float64]float64{}
	top := 0.0
	for _, s := range list {
		for _, q := range s.points {
			if math.IsNaN(q.value) || math.IsInf(q.value, 0) {
				continue
			}
			sums[q.at] += q.value
			top = max(top, q.value)
			if stacked {
				top = max(top, sums[q.at])
			}
		}
	}
	top = p.ceiling(top)
	shown := slices.DeleteFunc(slices.Clone(list), func(s named) bool { return !s.known() || stacked && !s.any() })
	h -= p.legend(out, shown, x, y+h, w)
	left, bottom := x+52, y+h-14
	for i := range 5 {
		v := top * float64(i) / 4
		line := bottom - (bottom-y-4)*float64(i)/4
		out.add(`<path d="M%.0f %.1fH%.0f" stroke="#e6e8eb"/>`, left, line, x+w)
		out.text(left-5, line+3, 9, "end", "#888", p.format(v))
	}
	times(out, from, to, left, x+w-left, bottom+13)
	place := func(at, v float64) string {
		return fmt.Sprintf("%.1f %.1f", left+(at-from)/(to-from)*(x+w-left), bottom-v/top*(bottom-y-4))
	}
	base := map[float64]float64{}
	for i, s := range shown {
		color := palette[i%len(palette)]
		var up, down []string
		flush := func() {
			if len(up) > 0 && stacked {
				slices.Reverse(down)
				out.add(`<path d="M%sL%sZ" fill="%s" fill-opacity="0.55"/>`, strings.Join(up, "L"), strings.Join(down, "L"), color)
			}
			if len(up) > 0 {
				out.add(`<path d="M%s" fill="none" stroke="%s" stroke-width="1.3"/>`, strings.Join(up, "L"), color)
			}
			up, down = nil, nil
		}
		for _, q := range s.points {
			if math.IsNaN(q.value) || math.IsInf(q.value, 0) {
				flush()
				continue
			}
			v := q.value
			if stacked {
				down = append(down, place(q.at, base[q.at]))
				v += base[q.at]
				base[q.at] = v
			}
			up = append(up, place(q.at, v))
		}
		flush()
	}
}

// any reports whether a series has a value that is not 0.
func (s named) any() bool {
	return slices.ContainsFunc(s.points, func(q point) bool { return q.value > 0 })
}

// legend writes the names of the series above a line and returns its height.
func (p boardPanel) legend(out *canvas, list []named, x, bottom, w float64) float64 {
	type entry struct {
		x    float64
		line int
	}
	var places []entry
	at, line := 0.0, 0
	for _, s := range list {
		width := 20 + 6.2*float64(len([]rune(s.name)))
		if at+width > w && at > 0 {
			at, line = 0, line+1
		}
		places = append(places, entry{at, line})
		at += width
	}
	height := float64(line+1) * 14
	for i, s := range list {
		y := bottom - height + float64(places[i].line)*14 + 12
		out.rect(x+places[i].x, y-7, 9, 7, palette[i%len(palette)])
		out.text(x+places[i].x+13, y, 10, "start", "#555", s.name)
	}
	return height
}

// heat draws a row for each series. For a histogram, each row shows the difference to the previous row.
func (p boardPanel) heat(out *canvas, list []named, x, y, w, h float64) {
	cumulative := len(list) > 0 && list[0].labels["le"] != ""
	from, to := out.from, out.to
	cells := make([]map[float64]float64, len(list))
	most := 0.0
	for i, s := range list {
		cells[i] = map[float64]float64{}
		for _, q := range s.points {
			v := q.value
			if cumulative && i > 0 {
				v -= valueAt(list[i-1], q.at)
			}
			cells[i][q.at] = v
			most = max(most, v)
		}
	}
	first, last := 0, len(list)
	if cumulative { // drop empty rows at both ends
		used := func(i int) bool {
			for _, v := range cells[i] {
				if v > 1e-9 {
					return true
				}
			}
			return false
		}
		for first < last-1 && !used(first) {
			first++
		}
		for last > first+1 && !used(last-1) {
			last--
		}
	}
	left, rows := x+72, last-first
	row := (h - 16) / float64(max(1, rows))
	step := math.Inf(1) // time between two points
	for _, s := range list {
		for i := 1; i < len(s.points); i++ {
			step = min(step, s.points[i].at-s.points[i-1].at)
		}
	}
	place := func(at float64) float64 { return left + (at-from)/(to-from)*(x+w-left) }
	for i := first; i < last; i++ {
		line := y + h - 16 - float64(i-first+1)*row
		label := list[i].name
		if v, err := strconv.ParseFloat(label, 64); err == nil && cumulative {
			label = "≤ " + p.format(v)
		}
		out.text(left-6, line+row/2+3, 9, "end", "#666", label)
		points := list[i].points
		depth := func(k int) float64 {
			return math.Ceil(12*math.Sqrt(max(0, cells[i][points[k].at])/max(most, 1e-9))) / 12
		}
		for j := 0; j < len(points); {
			k := j + 1
			for k < len(points) && depth(k) == depth(j) && points[k].at-points[k-1].at < 1.5*step {
				k++
			}
			if depth(j) > 0 {
				begin, end := place(points[j].at-step), place(points[k-1].at)
				out.rect(begin, line+0.5, end-begin+0.3, row-1, shade(depth(j)))
			}
			j = k
		}
	}
	times(out, from, to, left, x+w-left, y+h-2)
}

func valueAt(s named, at float64) float64 {
	for _, q := range s.points {
		if q.at == at {
			return q.value
		}
	}
	return 0
}

// shade returns a colour from pale to dark for values from 0 to 1.
func shade(v float64) string {
	mix := func(a, b float64) int { return int(a + (b-a)*min(1, max(0, v))) }
	return fmt.Sprintf("#%02x%02x%02x", mix(226, 20), mix(236, 58), mix(247, 122))
}

func (p boardPanel) states(out *canvas, list []named, x, y, w, h float64) {
	from, to := out.from, out.to
	left := x + 130
	row := min((h-16)/float64(max(1, len(list))), 24)
	for i, s := range list {
		line := y + float64(i)*row
		out.text(left-6, line+row/2+4, 10, "end", "#444", s.name)
		for j := 0; j < len(s.points); {
			k := j
			for k < len(s.points) && s.points[k].value == s.points[j].value {
				k++
			}
			end := to
			if k < len(s.points) {
				end = s.points[k].at
			}
			begin := left + (s.points[j].at-from)/(to-from)*(x+w-left)
			out.rect(begin, line+2, (end-s.points[j].at)/(to-from)*(x+w-left), row-4, p.color(s.points[j].value, "#999"))
			j = k
		}
	}
	times(out, from, to, left, x+w-left, y+h-2)
}
