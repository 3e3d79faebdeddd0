package config

import (
	"errors"
	"fmt"
	"net"
	"os"

	"go.yaml.in/yaml/v3"
)

// HealthAddress is the default address of the plaintext health endpoint. `lodge health` uses it
// without arguments. It suits containers, where every process has its own loopback interface.
const HealthAddress = "127.0.0.1:7199"

// HealthOf returns the health endpoint's address in a party's or coordinator's configuration, for a
// caller on the same machine. It reads only that setting, first from the environment.
func HealthOf(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("config: %w", err)
	}
	var f struct {
		HealthListen string `yaml:"health_listen"`
	}
	if err := yaml.Unmarshal(b, &f); err != nil {
		return "", fmt.Errorf("config: %s: %w", path, err)
	}
	if set, ok := os.LookupEnv(EnvPrefix + "HEALTH_LISTEN"); ok {
		f.HealthListen = set
	}
	if f.HealthListen == "" {
		return "", fmt.Errorf("config: %s: %w", path, ErrNoHealth)
	}
	host, port, err := net.SplitHostPort(f.HealthListen)
	if err != nil {
		return "", fmt.Errorf("config: %s: health_listen: %w", path, err)
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}

// ErrNoHealth reports that a configuration has no health endpoint.
var ErrNoHealth = errors.New("no health_listen: the process has no health endpoint")
