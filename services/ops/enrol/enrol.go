// Package enrol creates the files for one process of a cluster on the machine that keeps its
// secrets: keys that never leave the machine, a certificate request, and the process's entry for
// the roster.
package enrol

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// Roles that can be enrolled.
const (
	Party       = "party"
	Coordinator = "coordinator"
	Client      = "client"
	Evaluator   = "evaluator"
)

// Roles lists all roles.
var Roles = []string{Party, Coordinator, Client, Evaluator}

// Options describes the process or client to enrol.
type Options struct {
	Role     string
	Name     string   // name of a party, client or evaluator
	Address  string   // host:port of a party or the coordinator
	Identity string   // URI or DNS name in the certificate; empty: spiffe://lodge/ROLE/NAME
	Hosts    []string // additional names in the certificate
}

// Names of the files that Write creates.
const (
	KeyFile     = "tls.key"
	RequestFile = "tls.csr"
	SigningFile = "signing.key"
	VaultFile   = "vault.key"
	EntryFile   = "entry.yaml"
)

func (o *Options) fill() error {
	if o.Role != Coordinator && !config.ValidName(o.Name) {
		return fmt.Errorf("enrol: the name %q is invalid: use 1 to 64 of a-z, 0-9, '-', starting with a letter", o.Name)
	}
	if o.Role == Party && o.Name == config.CoordinatorName {
		return fmt.Errorf("enrol: %q is the coordinator's name; choose another name for the party", o.Name)
	}
	if o.Identity == "" {
		o.Identity = "spiffe://lodge/" + o.Role
		if o.Role != Coordinator {
			o.Identity += "/" + o.Name
		}
	}
	if err := rpc.NewDirectory().Add(o.Identity, rpc.Principal{Name: o.Role}); err != nil {
		return fmt.Errorf("enrol: %w", err)
	}
	for _, h := range o.Hosts {
		//lodge:check enrol/host any text becomes a name in a certificate
		if !config.ValidHost(h) {
			return fmt.Errorf("enrol: the host %q is invalid: use a name or an address without a port", h)
		}
	}
	if o.Role == Client || o.Role == Evaluator { // not part of the roster
		return nil
	}
	host, port, err := net.SplitHostPort(o.Address)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || number == 0 {
		return fmt.Errorf("enrol: the address %q is invalid: use host:port, as reached by the other processes", o.Address)
	}
	o.Hosts = append([]string{host}, o.Hosts...)
	return nil
}

// Write creates the files in an empty or missing directory, readable only by its owner. It returns
// the names of the secret files.
func Write(dir string, o Options) (secrets []string, err error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return nil, fmt.Errorf("enrol: %s is not empty; name a new directory", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if files[RequestFile], files[KeyFile], err = pki.NewRequest(o.Identity, o.Hosts); err != nil {
		return nil, err
	}
	secrets = []string{KeyFile}
	entry := config.Entry{Address: o.Address, Identity: o.Identity}
	if o.Role == Party {
		entry.Name = o.Name
		if files[SigningFile], entry.SigningKey, err = pki.NewSigningKey(); err != nil {
			return nil, err
		}
		if err := seal.WriteNewKey(filepath.Join(dir, VaultFile)); err != nil {
			return nil, err
		}
		secrets = append(secrets, SigningFile, VaultFile)
	}
	if o.Role == Party || o.Role == Coordinator {
		if files[EntryFile], err = yaml.Marshal(&entry); err != nil {
			return nil, err
		}
	}
	for name, b := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	return secrets, err
}
