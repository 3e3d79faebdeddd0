package main

import (
	"fmt"
	"strings"
)

// object is a JSON object of a Grafana dashboard.
type object = map[string]any

// dashboard describes a dashboard; json converts it for Grafana.
type dashboard struct {
	name, title, about string
	variables          []variable
	panels             []panel
}

// variable is a selector at the top of a dashboard.
type variable struct {
	name, label string
	query       string // returns the possible values
	several     bool   // allows several values; initially all are selected
}

// panel is one chart. Panels of equal height share a row until its 24 columns are filled.
type panel struct {
	kind          string // Grafana's type: timeseries, stat, bargauge, heatmap, state-timeline
	title, about  string
	unit          string // Grafana's name
	width, height int
	queries       []query
	stacked       bool
	steps         []step // colour thresholds; without them each series has one colour
	max           float64
}

// query is a Prometheus query; legend is the template for the names of its series.
type query struct{ expr, legend string }

// step sets the colour for values from a threshold on.
type step struct {
	from  float64
	color string
}

// zero has the colours for values that should be 0.
var zero = []step{{0, "green"}, {1, "red"}}

// one has the colours for values that should be 1.
var one = []step{{0, "red"}, {1, "green"}}

// source refers to the selected data source.
func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

// json returns the dashboard in Grafana's format.
func (d dashboard) json() object {
	list := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}}
	for _, v := range d.variables {
		x := object{
			"name": v.name, "label": v.label, "type": "query", "datasource": source(), "refresh": 2, "sort": 1,
			"query": object{"query": v.query, "refId": "variable"},
		}
		if v.several {
			x["multi"], x["includeAll"], x["allValue"] = true, true, ".*"
			x["current"] = object{"text": "All", "value": "$__all"}
		}
		list = append(list, x)
	}
	panels := make([]object, len(d.panels))
	column, row, height := 0, 0, 0
	for i, p := range d.panels {
		if column+p.width > 24 {
			column, row, height = 0, row+height, 0
		}
		panels[i] = p.json(i+1, object{"x": column, "y": row, "w": p.width, "h": p.height})
		column, height = column+p.width, max(height, p.height)
	}
	return object{
		"uid": "lodge-" + d.name, "title": "Lodge: " + d.title, "description": d.about, "tags": []string{"lodge"}, "editable": true,
		"schemaVersion": 41, "timezone": "browser", "refresh": "30s", "time": object{"from": "now-1h", "to": "now"},
		"templating": object{"list": list}, "panels": panels,
		"links": []object{{
			"title": "Lodge", "type": "dashboards", "tags": []string{"lodge"}, "asDropdown": true, "includeVars": false, "keepTime": true,
			"targetBlank": false, "icon": "external link", "tooltip": "", "url": "",
		}},
	}
}

func (p panel) json(id int, at object) object {
	defaults := object{"unit": p.unit, "color": object{"mode": "palette-classic"}}
	if p.unit != "s" && p.kind != "heatmap" {
		defaults["min"] = 0
	}
	if p.max > 0 {
		defaults["max"] = p.max
	}
	if len(p.steps) > 0 {
		steps := []object{}
		for i, s := range p.steps {
			x := object{"color": s.color, "value": s.from}
			if i == 0 {
				x["value"] = nil
			}
			steps = append(steps, x)
		}
		defaults["color"] = object{"mode": "thresholds"}
		defaults["thresholds"] = object{"mode": "absolute", "steps": steps}
	}
	var options object
	instant := false
	reduce := object{"calcs": []string{"lastNotNull"}, "values": false, "fields": ""}
	switch p.kind {
	case "timeseries":
		stacking := "none"
		fill := 0
		if p.stacked {
			stacking, fill = "normal", 40
		}
		defaults["custom"] = object{
			"drawStyle": "line", "lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "spanNulls": false,
			"stacking": object{"mode": stacking, "group": "A"},
		}
		options = object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	case "stat":
		instant = true
		options = object{
			"reduceOptions": reduce, "orientation": "auto", "textMode": "auto", "colorMode": "value", "graphMode": "none", "justifyMode": "auto",
			"showPercentChange": false, "wideLayout": true, "percentChangeColorMode": "standard",
		}
	case "bargauge":
		instant = true
		options = object{
			"reduceOptions": reduce, "orientation": "horizontal", "displayMode": "basic", "valueMode": "color", "namePlacement": "auto",
			"showUnfilled": true, "sizing": "auto", "minVizWidth": 8, "minVizHeight": 16, "maxVizHeight": 300,
			"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": false, "calcs": []string{}},
		}
	case "heatmap":
		options = object{
			"calculate": false, "cellGap": 1, "showValue": "never",
			"color":     object{"mode": "scheme", "scheme": "Spectral", "steps": 64, "reverse": true, "exponent": 0.5, "fill": "dark-orange"},
			"yAxis":     object{"unit": p.unit, "axisPlacement": "left"},
			"rowsFrame": object{"layout": "auto"}, "legend": object{"show": true}, "exemplars": object{"color": "red"},
			"tooltip": object{"mode": "single", "yHistogram": false, "showColorScale": false}, "filterValues": object{"le": 1e-9},
		}
	case "state-timeline":
		defaults["custom"] = object{"lineWidth": 0, "fillOpacity": 70}
		options = object{
			"mergeValues": true, "showValue": "never", "alignValue": "left", "rowHeight": 0.9,
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": false, "calcs": []string{}},
			"tooltip": object{"mode": "single", "sort": "none"},
		}
	default:
		panic("no panel of the kind " + p.kind)
	}
	targets := []object{}
	for i, q := range p.queries {
		format := "time_series"
		if p.kind == "heatmap" && strings.Contains(q.expr, "by (le)") {
			format = "heatmap"
		}
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source(), "expr": q.expr, "legendFormat": q.legend, "editorMode": "code",
			"instant": instant, "range": !instant, "format": format,
		})
	}
	return object{
		"id": id, "type": p.kind, "title": p.title, "description": p.about, "datasource": source(), "gridPos": at, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}}, "options": options,
	}
}

// quantile returns the expression for a quantile of a histogram, grouped by labels.
func quantile(q float64, histogram, matchers, by string) string {
	if by != "" {
		by = ", " + by
	}
	return fmt.Sprintf("histogram_quantile(%g, sum by (le%s) (rate(%s_bucket{%s}[$__rate_interval])))", q, by, histogram, matchers)
}
