//go:build kube

package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// process is a release: a party or the coordinator.
type process struct {
	name     string
	nodePort int
}

// namespace returns the name of the release's namespace.
func (p process) namespace() string { return "lodge-" + p.name }

// host returns the name of its Service in the cluster.
func (p process) host() string { return p.name + "-lodge." + p.namespace() + ".svc.cluster.local" }

func (p process) role() string {
	if p.name == config.CoordinatorName {
		return p.name
	}
	return "party"
}

var (
	coordinator = process{config.CoordinatorName, 30100}
	parties     = []process{{"p0", 30101}, {"p1", 30102}, {"p2", 30103}}
	processes   = append(slices.Clone(parties), coordinator)
	clients     = []string{devnet.Operator, devnet.App, "client-p0", "client-p1", "client-p2"}
)

// node is the address of the NodePorts.
const node = "10.244.0.1"

// enrolled makes the keys, the certificates and the roster with the commands of
// docs/guides/kubernetes.md, and a directory for commands that connect from outside. Its roster
// differs from the processes' roster only in addresses.
func (c cluster) enrolled() {
	dir := filepath.Join(*workFlag, "enrolled")
	join := []string{"roster", "join"}
	for _, p := range processes {
		args := []string{"enrol", filepath.Join(dir, p.name), "--role", p.role(), "--address", p.host() + ":7100"}
		if p.role() == "party" {
			args = append(args, "--name", p.name)
		}
		c.lodge(args...)
		join = append(join, filepath.Join(dir, p.name, "entry.yaml"))
	}
	for _, name := range clients {
		c.lodge("enrol", filepath.Join(dir, name), "--role", "client", "--name", name)
	}
	c.lodge(append(join, "--out", rosterPath())...)
	if out := c.lodge("roster", "show", rosterPath()); !strings.Contains(out, "digest ") || strings.Count(out, "svc.cluster.local") != len(processes) {
		c.t.Errorf("the roster: %s", out)
	}

	ca := filepath.Join(dir, "ca")
	c.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", ca+".key", "-out", ca+".crt",
		"-days", "7", "-subj", "/CN=Lodge", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
	c.write(filepath.Join(dir, "usages"), "extendedKeyUsage=serverAuth,clientAuth\n")
	names := slices.Clone(clients)
	for _, p := range processes {
		names = append(names, p.name)
	}
	for _, name := range names {
		c.sign(name)
	}
	c.outside(dir)
}

// sign issues a certificate for a request.
func (c cluster) sign(name string) {
	c.t.Helper()
	dir := filepath.Join(*workFlag, "enrolled")
	ca, tls := filepath.Join(dir, "ca"), filepath.Join(dir, name, "tls")
	c.run("openssl", "x509", "-req", "-in", tls+".csr", "-CA", ca+".crt", "-CAkey", ca+".key", "-days", "7", "-copy_extensions", "copyall",
		"-extfile", filepath.Join(dir, "usages"), "-out", tls+".crt")
}

func rosterPath() string { return filepath.Join(*workFlag, "roster.yaml") }

// outside creates the directory for commands.
func (c cluster) outside(dir string) {
	roster, err := config.LoadRoster(rosterPath())
	if err != nil {
		c.t.Fatal(err)
	}
	at := func(p process) string { return fmt.Sprintf("%s:%d", node, p.nodePort) }
	for i := range roster.Parties {
		roster.Parties[i].Address = at(parties[i])
	}
	roster.Coordinator.Address = at(coordinator)
	text, err := roster.Text()
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(filepath.Join(clusterPath(), "roster.yaml"), string(text))
	c.copy(filepath.Join(dir, "ca.crt"), filepath.Join(clusterPath(), "ca.pem"))
	operator := lodge.Config{
		Name: devnet.Operator, Tenant: devnet.Tenant, Params: set,
		Coordinator: lodge.Server{Address: roster.Coordinator.Address, Identity: roster.Coordinator.Identity},
		TLS:         lodge.TLS{Certificate: devnet.Operator + ".pem", Key: devnet.Operator + ".key", CA: "../ca.pem"},
	}
	for _, m := range roster.Parties {
		operator.Parties = append(operator.Parties, lodge.Server{Name: m.Name, Address: m.Address, Identity: m.Identity})
	}
	if text, err = yaml.Marshal(&operator); err != nil {
		c.t.Fatal(err)
	}
	c.write(filepath.Join(clusterPath(), "clients", devnet.Operator+".yaml"), string(text))
	for _, name := range clients {
		c.copy(filepath.Join(dir, name, "tls.crt"), filepath.Join(clusterPath(), "clients", name+".pem"))
		c.copy(filepath.Join(dir, name, "tls.key"), filepath.Join(clusterPath(), "clients", name+".key"))
	}
}

func clusterPath() string { return filepath.Join(*workFlag, "outside") }

func (c cluster) write(path, text string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c cluster) copy(from, to string) {
	c.t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(to, string(b))
}
