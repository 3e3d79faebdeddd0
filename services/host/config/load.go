// Package config loads the YAML configuration of Lodge's processes: the roster, which all processes
// pin, and the files of parties, the coordinator and evaluators. Unknown keys are errors, secrets
// appear only as paths, and every error says what to write instead. Paths in a file are relative to
// the directory of that file.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Duration is a time span in YAML: "90s", "2m".
type Duration time.Duration

// UnmarshalYAML parses a positive time span.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v <= 0 {
		return fmt.Errorf("line %d: %q is not a positive time span; write for example 30s or 2m", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML returns the span as text.
func (d Duration) MarshalYAML() (any, error) { return time.Duration(d).String(), nil }

// Bytes is an amount of memory or data in YAML: "512MiB", "4GiB", or a number of bytes.
type Bytes uint64

var units = []struct {
	suffix string
	size   uint64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

// UnmarshalYAML parses an amount.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(n.Value, u.suffix)
		if !ok {
			continue
		}
		var v uint64
		if _, err := fmt.Sscanf(digits, "%d", &v); err != nil || fmt.Sprint(v) != digits || v > 1<<62/u.size {
			break
		}
		*b = Bytes(v * u.size)
		return nil
	}
	return fmt.Errorf("line %d: %q is not an amount of bytes; write for example 512MiB or 4GiB", n.Line, n.Value)
}

// MarshalYAML returns the amount with the largest unit that divides it.
func (b Bytes) MarshalYAML() (any, error) {
	for _, u := range units[:3] {
		if uint64(b) >= u.size && uint64(b)%u.size == 0 {
			return fmt.Sprintf("%d%s", uint64(b)/u.size, u.suffix), nil
		}
	}
	return fmt.Sprintf("%dB", uint64(b)), nil
}

// TLS names a process's TLS files.
type TLS struct {
	Certificate string `yaml:"certificate" check:"path"`          // certificate file, PEM
	Key         string `yaml:"key" check:"path"`                  // private key file, PEM, readable by its owner only
	CA          string `yaml:"ca" check:"path"`                   // authorities of peers' certificates
	ClientCA    string `yaml:"client_ca,omitempty" check:"path?"` // authorities of clients' certificates; default ca
}

// Files converts the files for package rpc.
func (t TLS) Files() rpc.Files { return rpc.Files(t) }

// Permissions of clients.
const (
	PermStatus   = "status"   // read sessions, epochs and batches
	PermFetch    = "fetch"    // fetch this party's tuple shares
	PermMACKey   = "mac_key"  // fetch this party's MAC-key share
	PermProve    = "prove"    // prove and verify plaintext knowledge
	PermDecrypt  = "decrypt"  // request decryption shares
	PermApprove  = "approve"  // approve other clients' decryption requests
	PermEncrypt  = "encrypt"  // request encryptions of bits under this party's multi-key keys
	PermEvaluate = "evaluate" // request evaluations of netlists on multi-key ciphertexts
	PermLinear   = "linear"   // multiply matrices and vectors, encrypted or shared
	PermRetire   = "retire"   // revoke tuples of its tenants; for all tenants, drain and retire epochs and destroy multi-key keys
	PermSubmit   = "submit"   // submit and cancel jobs at the coordinator
	PermReserve  = "reserve"  // reserve tuples, and release reservations, at the coordinator
	PermPolicy   = "policy"   // set the stock policies at the coordinator
	PermOperate  = "operate"  // change log levels, and generate multi-key keys

	// PermAccusations allows clearing unattributed failures and pardoning a party that evidence
	// convicts.
	PermAccusations = "accusations"
)

// maxFile is the largest size of a configuration file.
const maxFile = 1 << 20

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("config: %s is larger than 1 MiB", path)
	}
	return b, nil
}

// decode reads a YAML file strictly into out.
func decode(path string, out any) error {
	b, err := read(path)
	if err != nil {
		return err
	}
	if err := decodeBytes(b, out); err != nil {
		return fmt.Errorf("config: %s: %w", path, err)
	}
	return nil
}

func decodeBytes(b []byte, out any) error {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(out); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the file is empty")
		}
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one YAML document")
	}
	return nil
}

// check collects all errors in a file.
type check struct {
	dir  string // of the file
	errs []error
}

// load reads a file with its settings. The check has the faults of values that the tags of their
// fields show.
func load(path string, file any, set []string, into *[]Setting) (*check, error) {
	list, err := decodeSet(path, file, set)
	if err != nil {
		return nil, err
	}
	*into = list
	c := &check{dir: filepath.Dir(path)}
	c.fill("", reflect.ValueOf(file).Elem())
	return c, nil
}

func (c *check) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *check) err(path string) error {
	if len(c.errs) == 0 {
		return nil
	}
	return fmt.Errorf("config: %s: %w", path, errors.Join(c.errs...))
}

// path makes a file path absolute.
func (c *check) path(key string, p *string) {
	switch {
	case *p == "":
		c.failf("%s: missing; name a file", key)
	case !filepath.IsAbs(*p):
		*p = filepath.Join(c.dir, *p)
	}
}

func (c *check) address(key, a string) {
	if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
		c.failf("%s: %q is not host:port", key, a)
	}
}

// ValidHost reports whether h is an IP address or a DNS name (RFC 1123): labels of letters, digits
// and '-' that neither begin nor end with '-'.
func ValidHost(h string) bool {
	if net.ParseIP(h) != nil {
		return true
	}
	labels := strings.Split(h, ".")
	if len(h) > 253 || strings.Trim(labels[len(labels)-1], "0123456789") == "" { // a numeric last label means a malformed address
		return false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.ContainsFunc(l, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' // '_' is invalid in DNS, but containers' names have it
		}) {
			return false
		}
	}
	return true
}

func (c *check) name(key, n string) {
	if !ValidName(n) {
		c.failf("%s: %q is not a name; use 1 to 64 of a-z, 0-9, '-', starting with a letter", key, n)
	}
}

// ValidName reports whether n can name a party, client, tenant or job: 1 to 64 of a-z, 0-9 and '-',
// starting with a letter.
func ValidName(n string) bool { return ValidID(n) && n[0] >= 'a' && n[0] <= 'z' }

// ValidID reports whether id can name a reservation: 1 to 64 of a-z, 0-9 and '-'.
func ValidID(id string) bool {
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= 64
}
