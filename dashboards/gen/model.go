package main

import "strings"

// object is a JSON object of a Grafana dashboard.
type object = map[string]any

// dashboard describes a dashboard; json converts it for Grafana.
type dashboard struct {
	Title, About string
	Variables    []variable
	Panels       []panel
}

// variable is a selector at the top of a dashboard.
type variable struct {
	Name, Label string
	Query       string // returns the possible values
	Several     bool   // allows several values; initially all are selected
}

// panel is one chart. Panels of equal height share a row until its 24 columns are filled.
type panel struct {
	Kind          string // Grafana's type: timeseries, stat, bargauge, heatmap, state-timeline
	Title, About  string
	Unit          string // Grafana's name
	Width, Height int
	Stacked       bool
	Steps         []step // colour thresholds; without them each series has one colour
	Max           float64
	Queries       []query
}

// query is a Prometheus query; Legend is the template for the names of its series.
type query struct{ Expr, Legend string }

// step sets the colour for values from a threshold on.
type step struct {
	From  float64
	Color string
}

// source refers to the selected data source.
func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

// json returns the dashboard in Grafana's format.
func (d dashboard) json(name string) object {
	list := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}}
	for _, v := range d.Variables {
		x := object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": source(), "refresh": 2, "sort": 1,
			"query": object{"query": v.Query, "refId": "variable"},
		}
		if v.Several {
			x["multi"], x["includeAll"], x["allValue"] = true, true, ".*"
			x["current"] = object{"text": "All", "value": "$__all"}
		}
		list = append(list, x)
	}
	panels := make([]object, len(d.Panels))
	column, row, height := 0, 0, 0
	for i, p := range d.Panels {
		if column+p.Width > 24 {
			column, row, height = 0, row+height, 0
		}
		panels[i] = p.json(i+1, object{"x": column, "y": row, "w": p.Width, "h": p.Height})
		column, height = column+p.Width, max(height, p.Height)
	}
	return object{
		"uid": "lodge-" + name, "title": "Lodge: " + d.Title, "description": d.About, "tags": []string{"lodge"}, "editable": true,
		"schemaVersion": 41, "timezone": "browser", "refresh": "30s", "time": object{"from": "now-1h", "to": "now"},
		"templating": object{"list": list}, "panels": panels,
		"links": []object{{
			"title": "Lodge", "type": "dashboards", "tags": []string{"lodge"}, "asDropdown": true, "includeVars": false, "keepTime": true,
			"targetBlank": false, "icon": "external link", "tooltip": "", "url": "",
		}},
	}
}

func (p panel) json(id int, at object) object {
	defaults := object{"unit": p.Unit, "color": object{"mode": "palette-classic"}}
	if p.Unit != "s" && p.Kind != "heatmap" {
		defaults["min"] = 0
	}
	if p.Max > 0 {
		defaults["max"] = p.Max
	}
	if len(p.Steps) > 0 {
		steps := []object{}
		for i, s := range p.Steps {
			x := object{"color": s.Color, "value": s.From}
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
	switch p.Kind {
	case "timeseries":
		stacking := "none"
		fill := 0
		if p.Stacked {
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
			"yAxis":     object{"unit": p.Unit, "axisPlacement": "left"},
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
		panic("no panel of the kind " + p.Kind)
	}
	targets := []object{}
	for i, q := range p.Queries {
		format := "time_series"
		if p.Kind == "heatmap" && strings.Contains(q.Expr, "by (le)") {
			format = "heatmap"
		}
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source(), "expr": q.Expr, "legendFormat": q.Legend, "editorMode": "code",
			"instant": instant, "range": !instant, "format": format,
		})
	}
	return object{
		"id": id, "type": p.Kind, "title": p.Title, "description": p.About, "datasource": source(), "gridPos": at, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}}, "options": options,
	}
}
