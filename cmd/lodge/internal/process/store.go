package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// errUnsound is the error of `lodge store check` if it read everything and found a fault.
var errUnsound = rpc.Errorf(cli.CheckFailed, "see docs/operations/disaster-recovery.md, or restore a backup", "the store is damaged")

// lookAgain is the interval at which --wait checks whether the party has stopped.
const lookAgain = 200 * time.Millisecond

// storeFlags are the common flags of the `lodge store` commands.
type storeFlags struct {
	config   string
	auditDir string // of the party, after its configuration was loaded
	dry      bool
	wait     time.Duration // timeout for the party to stop
}

// storeCommand returns `lodge store`, which works on the vault of a stopped party.
func storeCommand() *cobra.Command {
	o := &storeFlags{}
	cmd := cli.Command("store", nil)
	f := cmd.PersistentFlags()
	f.StringVar(&o.config, "config", "party.yaml", "configuration of the party")
	f.Bool("json", false, "write JSON")
	f.DurationVar(&o.wait, "wait", 0, "wait this long for the party to stop")
	cmd.AddCommand(o.checkCommand(), o.statsCommand(), o.backupCommand(), o.restoreCommand(), o.rotateCommand(), o.quarantineCommand())
	return cmd
}

func (o *storeFlags) dryRun(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, what)
}

// load reads the party's configuration and its key.
func (o *storeFlags) load() (seal.Place, *seal.Key, error) {
	f, err := config.LoadParty(o.config)
	if err != nil {
		return seal.Place{}, nil, cli.Misconfigured(err)
	}
	o.auditDir = f.AuditDir
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		err = cli.Invalid("check vault.key_file in "+o.config, "%v", err)
	}
	return seal.Place{Dir: f.Vault.Dir, PostgresDSNFile: f.Vault.PostgresDSNFile}, key, err
}

// open opens an existing store, or with create an empty one to restore into.
func (o *storeFlags) open(cmd *cobra.Command, p seal.Place, fresh bool) (store.Store, error) {
	if p.Dir != "" && !fresh {
		if _, err := os.Stat(filepath.Join(p.Dir, "records.db")); errors.Is(err, os.ErrNotExist) {
			return nil, rpc.Errorf(rpc.NotFound, "start the party once, or restore a backup", "there is no store in %s", p.Dir)
		}
	}
	for over := time.Now().Add(o.wait); ; {
		s, err := p.OpenStore(cmd.Context())
		if !errors.Is(err, store.ErrInUse) {
			return s, err
		}
		if !time.Now().Before(over) {
			return nil, rpc.Errorf(rpc.Conflict, "stop the party first", "the store is in use: %v", err)
		}
		select {
		case <-time.After(lookAgain):
		case <-cmd.Context().Done():
			return nil, cmd.Context().Err()
		}
	}
}

// examine opens the vault of a party without changing it.
func (o *storeFlags) examine(cmd *cobra.Command) (v *vault.Vault, key *seal.Key, err error) {
	place, key, err := o.load()
	if err != nil {
		return nil, nil, err
	}
	s, err := o.open(cmd, place, false)
	if err != nil {
		return nil, nil, err
	}
	if v, err = vault.Examine(s, key); errors.Is(err, vaulterr.ErrWrongKey) {
		err = rpc.Errorf(rpc.Invalid, "name the key of this store as vault.key_file in "+o.config, "%v", err)
	}
	return v, key, err
}

// checkReport is the JSON outcome of `lodge store check`.
type checkReport struct {
	upkeep.Checked
	OK   bool             `json:"ok"`
	Deep bool             `json:"deep"`
	List []upkeep.Finding `json:"list"`
	// Audit describes the audit log; nil if there is none.
	Audit *audit.Summary `json:"audit,omitempty"`
}

// checkAudit verifies the chain of the audit log, which must contain the entry that the store
// remembers.
func (r *checkReport) checkAudit(v *vault.Vault, dir string) error {
	head, err := v.AuditHead()
	if err != nil {
		return err
	}
	var known []audit.Hash
	if head != "" {
		h, err := audit.ParseHash(head)
		if err != nil {
			return err
		}
		known = append(known, h)
	}
	sum, err := audit.Verify(dir, known...)
	if head == "" && (errors.Is(err, audit.ErrNoLog) || errors.Is(err, os.ErrNotExist)) {
		return nil // the party was never started, or starts a new log after a restore
	}
	r.Audit = &sum
	switch {
	case errors.Is(err, audit.ErrUnfinished):
		r.List = append(r.List, upkeep.Finding{Where: "audit", What: err.Error(), Mended: true})
	//lodge:check cli/store-check-audit run=TestStoreCheckAudit `lodge store check` calls a store sound whose audit log was changed
	case err != nil:
		r.Findings++
		r.List = append(r.List, upkeep.Finding{Where: "audit", What: err.Error()})
	}
	return nil
}

func (o *storeFlags) checkCommand() *cobra.Command {
	r := checkReport{List: []upkeep.Finding{}}
	cmd := cli.Command("check", func(cmd *cobra.Command, _ []string) (err error) {
		v, _, err := o.examine(cmd)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.Close()) }()
		p := cli.ProgressOf(cmd)
		show := func(done, total int) { p.Show(fmt.Sprintf("read %d of %d", done, total), false) }
		r.Checked, err = v.Check(r.Deep, show, func(f upkeep.Finding) { r.List = append(r.List, f) })
		p.Done()
		if err == nil {
			err = r.checkAudit(v, o.auditDir)
		}
		if err != nil {
			return err
		}
		r.OK = r.Findings == 0
		cli.Hold(cmd)
		if err := writeStore(o, cmd, r, printCheck); err != nil {
			return err
		}
		if !r.OK {
			return fmt.Errorf("%w: %d findings", errUnsound, r.Findings)
		}
		return nil
	})
	cmd.Flags().BoolVar(&r.Deep, "deep", false, "read all data")
	return cmd
}

func (o *storeFlags) statsCommand() *cobra.Command {
	return cli.Command("stats", func(cmd *cobra.Command, _ []string) (err error) {
		v, _, err := o.examine(cmd)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.Close()) }()
		s, err := v.Stats()
		if err != nil {
			return err
		}
		return writeStore(o, cmd, s, printStats)
	})
}

// rotateReport is the JSON outcome of `lodge store rotate-key`.
type rotateReport struct {
	KeyFile string `json:"key_file"`
	Made    bool   `json:"made"` // made by this command
	DryRun  bool   `json:"dry_run,omitempty"`
}

func (o *storeFlags) rotateCommand() *cobra.Command {
	var file string
	cmd := cli.Command("rotate-key", func(cmd *cobra.Command, _ []string) error {
		r := rotateReport{KeyFile: file, DryRun: o.dry}
		if err := o.rotate(cmd, &r); err != nil {
			return err
		}
		return writeStore(o, cmd, r, printRotate(o.config))
	})
	cmd.Flags().StringVar(&file, "new-key-file", "", "file of the new key: 64 hexadecimal digits, readable by its owner only")
	_ = cmd.MarkFlagRequired("new-key-file")
	o.dryRun(cmd, "check that both keys work, and change nothing")
	return cmd
}

func (o *storeFlags) rotate(cmd *cobra.Command, r *rotateReport) (err error) {
	v, old, err := o.examine(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	_, err = os.Stat(r.KeyFile)
	if errors.Is(err, os.ErrNotExist) {
		if r.Made = true; o.dry {
			return nil
		}
		err = seal.WriteNewKey(r.KeyFile)
	}
	if err != nil {
		return err
	}
	fresh, err := seal.LoadKey(r.KeyFile)
	if err != nil || o.dry {
		return err
	}
	return v.RotateKey(old, fresh)
}

// quarantineReport is the JSON outcome of `lodge store quarantine`.
type quarantineReport struct {
	Reason string `json:"reason"` // empty: not in quarantine
	Left   bool   `json:"left"`
	DryRun bool   `json:"dry_run,omitempty"`
}

func (o *storeFlags) quarantineCommand() *cobra.Command {
	var leave bool
	cmd := cli.Command("quarantine", func(cmd *cobra.Command, _ []string) (err error) {
		v, _, err := o.examine(cmd)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.Close()) }()
		r := quarantineReport{DryRun: o.dry}
		if r.Reason, err = v.Quarantined(); err != nil {
			return err
		}
		if leave && !o.dry && r.Reason != "" {
			if err := v.LeaveQuarantine(); err != nil {
				return err
			}
			r.Left = true
		}
		return writeStore(o, cmd, r, printQuarantine(leave))
	})
	cmd.Flags().BoolVar(&leave, "leave", false, "go on")
	o.dryRun(cmd, "with --leave: show the effect and change nothing")
	return cmd
}
