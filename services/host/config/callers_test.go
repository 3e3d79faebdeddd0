package config

import (
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestCallers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	for text, want := range map[string]string{
		"": "",
		"callers: {connections: 2000, connections_per_client: 500, calls: 2000, calls_per_client: 100}\n": "",
		"callers: {calls_per_client: 513}\n":           "calls_per_client is 513 and calls is 512",
		"callers: {connections: 10}\n":                 "connections_per_client is 64 and connections is 10",
		"callers: {connections_per_client: -1}\n":      "connections_per_client is -1",
		"callers: {calls: 64, unknown: 1}\n":           "unknown",
		"callers: {calls: many}\n":                     "many",
		"callers: {calls: 64, calls_per_client: 64}\n": "",
	} {
		f, err := LoadCoordinator(write(t, dir, "c.yaml", coordinatorYAML+text))
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case strings.Contains(text, "2000") && f.Callers.Limits() != (rpc.Limits{Connections: 2000, ConnectionsPerClient: 500, Calls: 2000, CallsPerClient: 100}):
			t.Errorf("%s: %+v", text, f.Callers)
		}
	}
}
