// Package dashboards tests the dashboards, rules and metrics on a real cluster with a real
// Prometheus, and draws pictures of the dashboards. Its tests have the build tag dashboards; run
// them with make dashboards.
package dashboards
