package tuples

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// fetchReport is the JSON outcome of `lodge fetch`.
type fetchReport struct {
	Dir         string `json:"dir"`
	Party       int    `json:"party"`
	Reservation string `json:"reservation"`
	cli.ClassRecord
	Epoch      uint64  `json:"epoch"`
	Tuples     uint64  `json:"tuples"`
	Bytes      int64   `json:"bytes"`
	Resumed    int64   `json:"resumed_tuples,omitempty"` // already downloaded by an earlier call
	WithMACKey bool    `json:"with_mac_key"`
	Again      bool    `json:"delivered_before"` // rather than to continue
	Seconds    float64 `json:"seconds"`
	held       *tuplesv1.Reservation
}

// fetchCommand returns `lodge fetch`.
func fetchCommand() *cobra.Command {
	o := &cli.Operator{}
	var out string
	var withKey bool
	cmd := cli.Command("fetch", func(cmd *cobra.Command, args []string) error {
		c, err := o.DialParty()
		if err != nil {
			return err
		}
		defer c.Conn.Close()
		start := time.Now()
		r, err := fetch(c, cmd.Context(), args[0], out, withKey, cli.ProgressOf(cmd))
		if err != nil {
			return c.Explain(err)
		}
		r.Seconds = time.Since(start).Seconds()
		if r.Again {
			warnDrawn(cmd.ErrOrStderr(), c, r.held)
		}
		return cli.Print(cmd, r, "%d %s tuples, %s, of party %s in %s\n", r.Tuples, r.Kind, cli.Size(float64(r.Bytes)), o.Party, r.Dir)
	}, func() []string { return completeReservations(o) })
	o.Flags(cmd)
	o.PartyFlag(cmd, "party whose shares are downloaded, by name or index")
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "directory to create, or the directory of an interrupted download")
	f.BoolVar(&withKey, "with-mac-key", false, "also download the party's share of the MAC key")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// drawer downloads shares over a connection to a party.
func drawer(c *cli.Party) (*lodge.Client, error) {
	x := lodge.Config{Party: c.Roster.Parties[c.Index].Name}
	for _, m := range c.Roster.Parties {
		x.Parties = append(x.Parties, lodge.Server{Name: m.Name, Address: m.Address, Identity: m.Identity})
	}
	return lodge.Over(x, nil, c.Conn)
}

// manifest describes the shares of a reservation, and fetches the share of the MAC key for it. It
// consumes nothing.
func manifest(c *cli.Party, ctx context.Context, id string, withKey bool) (m tuplefile.Manifest, size int, r *tuplesv1.Reservation, err error) {
	ctx, cancel := context.WithTimeout(ctx, cli.CallTime)
	defer cancel()
	got, err := c.GetReservation(ctx, &tuplesv1.GetReservationRequest{Id: id})
	if err != nil {
		return m, 0, nil, err
	}
	r = got.GetReservation()
	origin := lodge.Origin{Parties: len(c.Roster.Parties), Party: c.Index}
	epochs, err := c.Keygen.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return m, 0, nil, err
	}
	for _, e := range epochs.GetEpochs() {
		if e.GetEpoch() == r.GetEpoch() {
			origin.KeygenSecurity = e.GetKeygenSecurity()
		}
	}
	var key []byte
	if withKey {
		k, err := c.DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: r.GetMacKeyId(), Purpose: tuplesv1.Purpose_PURPOSE_ONLINE})
		if err != nil {
			return m, 0, nil, err
		}
		key = append([]byte{}, k.GetShare()...) // never nil: a missing share is an error
		defer clear(key)
	}
	m, size, err = lodge.ManifestOf(r, key, origin)
	return m, size, r, err
}

// fetch downloads a reservation into a directory.
func fetch(c *cli.Party, ctx context.Context, id, dir string, withKey bool, p *terminal.Progress) (_ *fetchReport, err error) {
	if _, err := os.Lstat(filepath.Join(dir, tuplefile.ManifestName)); err == nil {
		next := "name a new directory"
		if withKey {
			next += "; while the lease lasts the same shares can be downloaded again, with the share of the MAC key: then delete the first directory"
		}
		return nil, rpc.Errorf(rpc.Conflict, next, "%s already contains shares", dir)
	}
	m, size, reservation, err := manifest(c, ctx, id, withKey)
	if err != nil {
		return nil, err
	}
	w, have, err := tuplefile.Resume(dir, m, size)
	if errors.Is(err, tuplefile.ErrManifest) || errors.Is(err, os.ErrExist) {
		return nil, rpc.Errorf(rpc.Conflict, "name a new directory", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	total := m.Tuples * m.RecordBytes(size)
	if err := copyTo(c, ctx, w, p, id, have, m.RecordBytes(size), total); err != nil {
		kept := w.Keep()
		if ctx.Err() != nil {
			err = rpc.Errorf(rpc.Cancelled, "the same command continues while the lease lasts", "interrupted; %s contains the shares received so far", dir)
		}
		return nil, errors.Join(err, kept)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &fetchReport{
		Dir: dir, Party: c.Index, Reservation: id, ClassRecord: cli.ClassJSON(reservation.GetClass()), Epoch: m.Epoch, Tuples: uint64(m.Tuples), Bytes: total,
		Resumed: have, WithMACKey: withKey, Again: have == 0 && drawn(reservation), held: reservation,
	}, nil
}

// copyTo streams the tuples after the first have tuples to w.
func copyTo(c *cli.Party, ctx context.Context, w io.Writer, p *terminal.Progress, id string, have, record, total int64) error {
	if have*record == total {
		return nil
	}
	d, err := drawer(c)
	if err != nil {
		return err
	}
	s, err := d.Fetch(ctx, id, lodge.From(uint64(have)))
	if err != nil {
		return err
	}
	defer s.Close()
	defer p.Done()
	_, err = io.Copy(io.MultiWriter(w, terminal.NewTransfer(p, have*record, total)), s)
	return err
}
