package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/secretfile"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/disk"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

const (
	soon      = 14 * 24 * time.Hour // a certificate that expires within this time causes a warning
	fewBytes  = 1 << 30             // minimum free bytes on a disk
	noBytes   = 64 << 20
	testBytes = 16 << 20 // bytes written to a disk
	slowDisk  = 20e6     // bytes per second
	storeTime = 15 * time.Second
)

// Load loads the configuration of a party, of the coordinator or of an evaluator. It recognises the
// role by the file's name, and by a key that only this role has.
func Load(path string) (*Process, error) {
	switch {
	case filepath.Base(path) == "coordinator.yaml" || hasKey(path, "data_dir"):
		f, err := config.LoadCoordinator(path)
		if err != nil {
			return nil, err
		}
		return &Process{File: path, Name: config.CoordinatorName, roster: f.Roster, identity: f.Roster.Coordinator.Identity, tls: f.TLS, params: f.Params}, nil
	case filepath.Base(path) == "evaluator.yaml" || hasKey(path, "party"):
		f, err := config.LoadEvaluator(path)
		if err != nil {
			return nil, err
		}
		return &Process{File: path, Name: f.Name, tls: f.TLS, params: f.Params, memory: f.MaxMemory + f.MaxKeysMemory}, nil
	}
	f, err := config.LoadParty(path)
	if err != nil {
		return nil, err
	}
	return &Process{File: path, Name: f.Name, Party: f, roster: f.Roster, identity: f.Roster.Parties[f.Index].Identity, tls: f.TLS,
		params: f.Policy.Params, memory: f.Policy.MaxMemory}, nil
}

// hasKey reports whether a file has this key at its top level.
func hasKey(path, key string) bool {
	b, err := os.ReadFile(path)
	return err == nil && slices.ContainsFunc(strings.Split(string(b), "\n"), func(l string) bool { return strings.HasPrefix(l, key+":") })
}

func (e *examination) load(file string) *Process {
	p, err := Load(file)
	if err != nil {
		e.fail(filepath.Base(filepath.Dir(file)), "config", "correct the file", "%s", oneLine(err))
		return nil
	}
	if p.roster == nil {
		e.ok(p.Name, "config", "%s is valid", file)
		return p
	}
	e.ok(p.Name, "config", "%s and its roster are valid", file)
	return p
}

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// local examines the files of a process.
func (e *examination) local(ctx context.Context, p *Process) {
	e.modes(p)
	e.certificate(p)
	e.pins(p)
	if p.Party == nil {
		return
	}
	if _, err := p.Party.Signer(); err != nil {
		e.fail(p.Name, "signing-key", "install the key whose public half is in the roster", "%s", oneLine(err))
	} else {
		e.ok(p.Name, "signing-key", "it matches the key in the roster")
	}
	if p.Party.Policy.AllowNoSacrifice {
		e.warn(p.Name, "policy", "remove allow_no_sacrifice, unless the keys were made by parties that trust each other",
			"accepts products that malformed evaluation keys could make wrong")
	}
	if p.Party.AllowPassiveKeygen {
		e.warn(p.Name, "policy", "remove allow_passive_keygen, unless this is for development", "accepts keys whose generation is only passively secure")
	}
	if p.Party.AllowPassiveThreshold {
		e.ok(p.Name, "policy", "threshold keys, which are secure only against parties that follow the protocol, are allowed")
	}
	readers := p.Party.Threshold.KeyReaders()
	for i := range readers {
		e.warn(p.Name, "decryption", "name attesters (provenance) or set approvals in threshold.rules, and remove any_ciphertexts", "%s", readers[i].Warning())
	}
	if n := len(p.Party.Threshold.Rules); n > len(readers) {
		e.ok(p.Name, "decryption", "%d of %d rules require provenance or approvals", n-len(readers), n)
	}
	if p.Party.AllowPassiveLinear {
		e.ok(p.Name, "policy", "two-party linear algebra, which is secure only against parties that follow the protocol, is allowed")
	}
	if p.Party.AllowUnprovedLinear {
		e.warn(p.Name, "policy", "remove allow_unproved_linear, and have clients use the default set, whose inputs are proved",
			"multiplies inputs without proofs: a client with malformed inputs learns the other client's matrix over thousands of products")
	}
	e.disk(p)
	e.vault(ctx, p)
}

// modes checks that other users cannot read secret files.
func (e *examination) modes(p *Process) {
	files := []string{p.tls.Key}
	if f := p.Party; f != nil {
		files = append(files, f.SigningKey, f.Vault.KeyFile)
		if f.Vault.PostgresDSNFile != "" {
			files = append(files, f.Vault.PostgresDSNFile)
		}
	}
	good := 0
	for _, path := range files {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			e.fail(p.Name, "key-files", "install the file, or name another in "+p.File, "%s", oneLine(err))
		case secretfile.Exposed(info):
			e.fail(p.Name, "key-files", "chmod 600 "+path, "%s can be read by others: mode %04o", path, info.Mode().Perm())
		default:
			good++
		}
	}
	if good == len(files) {
		e.ok(p.Name, "key-files", "files with secrets can be read only by their owner")
	}
}

// certificate examines a process's certificate: key, chain, identity and validity.
func (e *examination) certificate(p *Process) {
	t := p.tls
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		e.fail(p.Name, "certificate", "issue a certificate for the existing key", "%s", oneLine(err))
		return
	}
	roots, ca, err := authorities(t.CA)
	if err != nil {
		e.fail(p.Name, "certificate", "install the cluster's authority", "%s", oneLine(err))
		return
	}
	leaf, between := pair.Leaf, x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	uses := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if p.roster == nil { // only its party knows its authority and connects to it
		uses = nil
	}
	for _, use := range uses {
		at := e.now // an expired certificate is reported below
		if at.After(leaf.NotAfter) || at.Before(leaf.NotBefore) {
			at = leaf.NotAfter.Add(-time.Second)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
			e.fail(p.Name, "certificate", "have the authority in "+t.CA+" issue one for servers and clients", "%s: %s", t.Certificate, oneLine(err))
			return
		}
	}
	if p.identity != "" && !slices.Contains(rpc.Names(leaf), p.identity) {
		e.fail(p.Name, "certificate", "issue one with the name that the roster pins", "it names %q, but the roster names %q", rpc.Names(leaf), p.identity)
		return
	}
	if len(rpc.Names(leaf)) == 0 {
		e.fail(p.Name, "certificate", "issue one with a URI or DNS name, and have the party pin it", "it has neither a URI nor a DNS name")
		return
	}
	e.expiry(p.Name, "certificate", leaf)
	for _, c := range ca {
		if left := c.NotAfter.Sub(e.now); left < soon {
			e.warn(p.Name, "authority", "make a new authority, and add it to "+t.CA+" everywhere first", "it is valid for %s", days(left))
		}
	}
}

// expiry reports how long a certificate is valid.
func (e *examination) expiry(subject, check string, c *x509.Certificate) {
	left := c.NotAfter.Sub(e.now)
	switch {
	case e.now.Before(c.NotBefore):
		e.fail(subject, check, "set the clock, or issue another", "not valid before %s", c.NotBefore.Format(time.RFC3339))
	case left <= 0:
		e.fail(subject, check, "renew it and restart the process", "expired on %s", c.NotAfter.Format(time.RFC3339))
	case left < soon:
		e.warn(subject, check, "renew it and restart the process", "valid for %s", days(left))
	default:
		e.ok(subject, check, "valid for %s", days(left))
	}
}

func authorities(path string) (*x509.CertPool, []*x509.Certificate, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	list, err := pki.ParseCertificates(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %w", path, err)
	}
	pool := x509.NewCertPool()
	for _, c := range list {
		pool.AddCert(c)
	}
	return pool, list, nil
}

func days(d time.Duration) string {
	if d < 48*time.Hour {
		return d.Round(time.Minute).String()
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// pins compares the parameter sets of a configuration with those of this build.
func (e *examination) pins(p *Process) {
	good := 0
	for _, pin := range p.params {
		set, err := plan.Lookup(pin.Name)
		switch {
		case err != nil:
			e.fail(p.Name, "params", "use a build that has the set, or pin another", "%s", oneLine(err))
		case set.Hash != pin.Sum():
			e.fail(p.Name, "params", "agree with the other parties on one build and pin its hash", "%s has the hash %.8x in this build, but the configuration pins %.8s", pin.Name, set.Hash, pin.Hash)
		case set.Insecure:
			e.warn(p.Name, "params", "remove it, unless this is a test", "%s provides no security", pin.Name)
		case set.Legacy != nil:
			good++
			e.warn(p.Name, "params", "pin the successor at every party, make keys with it, and take this set out once no keys of it are in use", "%s", oneLine(set.Legacy))
		default:
			good++
		}
	}
	if good > 0 {
		e.ok(p.Name, "params", "all %d pinned sets match this build", good)
	}
}

// disk examines the free space for a vault, and writes to it.
func (e *examination) disk(p *Process) {
	dir := p.Party.Vault.Dir
	if dir == "" {
		return
	}
	for { // the closest existing parent directory
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	d, err := disk.SpaceOf(dir)
	if err != nil {
		e.warn(p.Name, "disk", "", "%s", oneLine(err))
		return
	}
	e.room(p.Name, d)
	rate, err := writeSpeed(dir)
	if err != nil {
		e.fail(p.Name, "disk-speed", "let this user write to "+dir, "%s", oneLine(err))
		return
	}
	e.grade(p.Name, "disk-speed", "put the vault on a faster disk: every reservation and delivery waits for it", size(rate)+" a second with sync", false, rate < slowDisk)
}

// room reports whether a disk has enough free space.
func (e *examination) room(subject string, d disk.Space) {
	const next = "free space, or move the vault"
	text := fmt.Sprintf("%s free of %s for the vault", size(float64(d.Free)), size(float64(d.Total)))
	e.grade(subject, "disk", next, text, d.Free < noBytes, d.Free < fewBytes || d.Free < d.Total/50)
}

// writeSpeed writes and removes a file, and returns the rate in bytes per second.
func writeSpeed(dir string) (rate float64, err error) {
	f, err := os.CreateTemp(dir, ".lodge-doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	piece, begun := make([]byte, 1<<20), time.Now()
	for range testBytes / len(piece) {
		if _, err := f.Write(piece); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return testBytes / time.Since(begun).Seconds(), nil
}

func size(b float64) string {
	for _, u := range []string{"B", "kB", "MB", "GB"} {
		if b < 1000 {
			return fmt.Sprintf("%.3g %s", b, u)
		}
		b /= 1000
	}
	return fmt.Sprintf("%.3g TB", b)
}

// vault opens a vault that is not in use, and reads the audit log.
func (e *examination) vault(ctx context.Context, p *Process) {
	f := p.Party
	known := e.open(ctx, p)
	if _, err := os.Stat(f.AuditDir); errors.Is(err, fs.ErrNotExist) {
		e.ok(p.Name, "audit", "there is no log yet")
		return
	}
	sum, err := audit.Verify(f.AuditDir, known...)
	if err != nil {
		e.fail(p.Name, "audit", "find out who changed it: `lodge audit verify "+f.AuditDir+"`", "%s", oneLine(err))
		return
	}
	if sum.Entries == 0 {
		e.ok(p.Name, "audit", "the log is empty")
		return
	}
	e.ok(p.Name, "audit", "%d entries, the chain is intact, its head is %.12s", sum.Entries, sum.Head.Hash)
}

// open examines a vault that is not in use. It returns the head of the audit log that the vault
// remembers.
func (e *examination) open(ctx context.Context, p *Process) (known []audit.Hash) {
	f := p.Party
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		e.fail(p.Name, "vault", "install the operator's key", "%s", oneLine(err))
		return nil
	}
	place := seal.Place{Dir: f.Vault.Dir, PostgresDSNFile: f.Vault.PostgresDSNFile}
	if place.Dir != "" {
		if _, err := os.Stat(filepath.Join(place.Dir, "records.db")); errors.Is(err, fs.ErrNotExist) {
			e.ok(p.Name, "vault", "the vault does not exist yet; the party creates it when it starts")
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if place.PostgresDSNFile != "" { // opening the store could stop a party that has lost its session for a moment
		if err := place.LookAt(ctx); err != nil {
			e.fail(p.Name, "vault", "check the server, and the connection string in "+place.PostgresDSNFile, "%s", oneLine(err))
			return nil
		}
		e.ok(p.Name, "vault", "PostgreSQL responds, and is configured to keep acknowledged data")
		return nil
	}
	s, err := place.OpenStore(ctx)
	switch {
	case errors.Is(err, store.ErrInUse):
		e.ok(p.Name, "vault", "in use by the running party")
		return nil
	case err != nil:
		e.fail(p.Name, "vault", "`lodge store check --config "+p.File+"` says more", "%s", oneLine(err))
		return nil
	}
	v, err := vault.Examine(s, key)
	if err != nil {
		e.fail(p.Name, "vault", "name the key that seals this store as vault.key_file, or look with `lodge store check`", "%s", oneLine(errors.Join(err, s.Close())))
		return nil
	}
	defer v.Close()
	reason, err := v.Quarantined()
	switch {
	case err != nil:
		e.fail(p.Name, "vault", "`lodge store check --config "+p.File+"` says more", "%s", oneLine(err))
	case reason != "":
		e.fail(p.Name, "vault", "find out why, then `lodge store quarantine --leave --config "+p.File+"`", "in quarantine: %s", reason)
	default:
		e.ok(p.Name, "vault", "it opens, and is not in quarantine")
	}
	if text, err := v.AuditHead(); err == nil && text != "" {
		if h, err := audit.ParseHash(text); err == nil {
			known = append(known, h)
		}
	}
	return known
}

// rosters compares the rosters of the configurations.
func (e *examination) rosters() {
	all := slices.DeleteFunc(slices.Clone(e.processes), func(p *Process) bool { return p.roster == nil })
	if len(all) == 0 {
		return
	}
	first := all[0]
	for _, p := range all[1:] {
		if p.roster.Hash() != first.roster.Hash() {
			e.fail("cluster", "roster", "give both the same file", "%s and %s have different rosters", first.Name, p.Name)
			return
		}
	}
	if e.Roster != nil && e.Roster.Hash() != first.roster.Hash() {
		e.fail("cluster", "roster", "use the roster file of the processes", "the given roster differs from that of %s", first.Name)
		return
	}
	h := first.roster.Hash()
	e.ok("cluster", "roster", "%d parties, digest %.6x, the same in every configuration on this machine", len(first.roster.Parties), h)
}

// memory compares the maximum memory of the processes on this machine with the available memory.
func (e *examination) memory() {
	var sum config.Bytes
	var who []string
	for _, p := range e.processes {
		if p.memory > 0 {
			sum += p.memory
			who = append(who, p.Name)
		}
	}
	has := machineMemory()
	if sum == 0 || has == 0 {
		return
	}
	text := fmt.Sprintf("%s may use %s, but this machine has %s", strings.Join(who, " and "), size(float64(sum)), size(float64(has)))
	e.grade("machine", "memory", "lower it, or add memory: a session may be killed", text, false, uint64(sum) > has/10*9)
}
