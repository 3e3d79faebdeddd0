package process

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// backupReport is the JSON outcome of `lodge store backup`.
type backupReport struct {
	upkeep.Restored        // as it was read back
	File            string `json:"file"`
	FileBytes       int64  `json:"file_bytes"`
}

// restoreReport is the JSON outcome of `lodge store restore`.
type restoreReport struct {
	upkeep.Restored
	KeepDecryption bool `json:"keep_decryption"`
	NewAuditLog    bool `json:"new_audit_log,omitempty"`
	DryRun         bool `json:"dry_run,omitempty"`
}

func (o *storeFlags) backupCommand() *cobra.Command {
	var file string
	cmd := cli.Command("backup", func(cmd *cobra.Command, _ []string) error {
		r := backupReport{File: file}
		if err := o.backup(cmd, &r); err != nil {
			return err
		}
		return writeStore(o, cmd, r, printBackup)
	})
	cmd.Flags().StringVar(&file, "out", "", "file to create")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// counted reports the number of bytes transferred.
type counted struct {
	n    int64
	show func(n int64)
}

func (c *counted) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	c.show(c.n)
	return len(b), nil
}

func newCounted(p *terminal.Progress, what string) *counted {
	return &counted{show: func(n int64) { p.Show(fmt.Sprintf("%s %.1f MB", what, float64(n)/1e6), false) }}
}

// backup creates the file under its final name only after it is complete and was read back.
func (o *storeFlags) backup(cmd *cobra.Command, r *backupReport) (err error) {
	v, key, err := o.examine(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if _, err := os.Lstat(r.File); err == nil {
		return rpc.Errorf(rpc.Conflict, "name another file", "%s exists", r.File)
	}
	part := r.File + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(part, r.File)
		}
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	p := cli.ProgressOf(cmd)
	defer p.Done()
	written := newCounted(p, "written")
	if _, err := v.Backup(io.MultiWriter(f, written)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	r.FileBytes = written.n
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r.Restored, err = vault.Restore(nil, io.TeeReader(f, newCounted(p, "read back")), key, upkeep.RestoreOptions{Check: true})
	return err
}

func (o *storeFlags) restoreCommand() *cobra.Command {
	var file string
	var keep, newLog bool
	cmd := cli.Command("restore", func(cmd *cobra.Command, _ []string) error {
		r := restoreReport{KeepDecryption: keep, NewAuditLog: newLog, DryRun: o.dry}
		if err := o.restore(cmd, file, &r); err != nil {
			return err
		}
		return writeStore(o, cmd, r, printRestore)
	})
	cmd.Flags().StringVar(&file, "in", "", "backup to restore")
	cmd.Flags().BoolVar(&newLog, "new-audit-log", false, "the audit log is lost too: the party starts a new one")
	cmd.Flags().BoolVar(&keep, "keep-decryption", false, "keep the epochs for decryption; see the risk above")
	_ = cmd.MarkFlagRequired("in")
	o.dryRun(cmd, "read the backup to its end without restoring it")
	return cmd
}

func (o *storeFlags) restore(cmd *cobra.Command, file string, r *restoreReport) (err error) {
	place, key, err := o.load()
	if err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	p := cli.ProgressOf(cmd)
	defer p.Done()
	stream := io.TeeReader(in, newCounted(p, "read"))
	opt := upkeep.RestoreOptions{KeepDecryption: r.KeepDecryption, NewAuditLog: r.NewAuditLog, Check: o.dry}
	if o.dry {
		r.Restored, err = vault.Restore(nil, stream, key, opt)
		return explainRestore(err)
	}
	s, err := o.open(cmd, place, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r.Restored, err = vault.Restore(s, stream, key, opt)
	return explainRestore(err)
}

func explainRestore(err error) error {
	switch {
	case errors.Is(err, vaulterr.ErrWrongKey):
		return rpc.Errorf(rpc.Invalid, "name the key of the store at the time of the backup as vault.key_file", "%v", err)
	case errors.Is(err, vaulterr.ErrExists):
		return rpc.Errorf(rpc.Conflict, "name an empty directory as vault.dir, or move its contents away", "%v", err)
	}
	return err
}
