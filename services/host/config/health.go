package config

import (
	"errors"
	"fmt"
	"net"
	"os"

	"go.yaml.in/yaml/v3"
)

// HealthAddress is where the processes of containers answer whether they live and are ready, each in a container of its
// own, and where `lodge health` asks if nothing else is said.
const HealthAddress = "127.0.0.1:7199"

// HealthOf gives the address at which the process with this configuration, a party or the coordinator, can be asked from
// the same machine. It looks at nothing else in the file, and at the environment first.
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

// ErrNoHealth refuses a process that does not answer whether it lives.
var ErrNoHealth = errors.New("no health_listen: the process does not answer whether it lives")
