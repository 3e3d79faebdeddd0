package lodgetest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// UnreachableCluster runs a coordinator whose parties are unreachable, so that jobs wait.
func UnreachableCluster(t *testing.T, change ...func(*config.CoordinatorFile)) (dir string) {
	t.Helper()
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.LoadCoordinator(net.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- coordinator.Run(ctx, f, "test", slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	until := time.Now().Add(10 * time.Second)
	for {
		_, err := Run(t, "jobs", "list", "--cluster", net.Dir)
		if err == nil {
			return net.Dir
		}
		if !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || time.Now().After(until) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func WriteYAML(t *testing.T, path string, v any) {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func Class(args ...string) []string {
	return append([]string{"--kind", "scalar", "--params", "insecure-8", "--field", LiveField}, args...)
}

// ThresholdSet is the parameter set for threshold keys in tests.
const ThresholdSet = "insecure-L8-50"

// BgvSet is the BGV parameter set in tests.
const BgvSet = "insecure-B5-17"

// StartThreshold starts three parties that make threshold keys.
func StartThreshold(t *testing.T, changes ...func(*devnet.Cluster)) *Live {
	t.Helper()
	return StartBare(t, devnet.Options{Parties: 3, Params: []string{ThresholdSet, BgvSet}, Dev: true, Insecure: true, MaxMemory: 2 << 30}, changes...)
}

// EveryParty changes the configurations of all parties.
func EveryParty(t *testing.T, change func(*config.PartyFile)) func(*devnet.Cluster) {
	return func(c *devnet.Cluster) {
		for _, file := range c.Parties {
			var f config.PartyFile
			b, err := os.ReadFile(file)
			if err == nil {
				err = yaml.Unmarshal(b, &f)
			}
			if err != nil {
				t.Fatal(err)
			}
			change(&f)
			if b, err = yaml.Marshal(&f); err == nil {
				err = os.WriteFile(file, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
