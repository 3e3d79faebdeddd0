package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// fetchReport is the outcome of `lodge fetch`.
type fetchReport struct {
	Dir         string `json:"dir"`
	Party       int    `json:"party"`
	Reservation string `json:"reservation"`
	classRecord
	Epoch      uint64  `json:"epoch"`
	Tuples     uint64  `json:"tuples"`
	Bytes      int64   `json:"bytes"`
	Resumed    int64   `json:"resumed_tuples,omitempty"` // that an earlier call had fetched
	WithMACKey bool    `json:"with_mac_key"`
	Again      bool    `json:"delivered_before"` // and not to go on
	Seconds    float64 `json:"seconds"`
	held       *tuplesv1.Reservation
}

// fetchCommand is `lodge fetch`.
func fetchCommand() *cobra.Command {
	o := &operator{}
	var out string
	var withKey bool
	cmd := &cobra.Command{
		Use:   "fetch RESERVATION --party PARTY --out DIR",
		Short: "Draw one party's shares of a reservation into a directory",
		Long: "Draw a party's shares of a reservation, as its client with the permissions status and fetch, to a new directory in\n" +
			"the format of docs/reference/export-format.md. The party records them as consumed by this client before the first byte\n" +
			"leaves. What was interrupted goes on when the same command is given again, while the lease lasts.\n\n" +
			"An online phase, and `lodge export`, need the party's share of the MAC key beside them: --with-mac-key draws that\n" +
			"too, with the permission mac_key. To check the tuples instead of using them, fetch at every party first, and then\n" +
			"draw the shares of the key with `lodge mac-keys draw --pool --into DIR`, which retires the epoch.\n\n" + connecting,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeReservations),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.dialParty()
			if err != nil {
				return err
			}
			defer c.conn.Close()
			start := time.Now()
			r, err := c.fetch(cmd.Context(), args[0], out, withKey, progressOf(cmd, o.json))
			if err != nil {
				return c.explain(err)
			}
			r.Seconds = time.Since(start).Seconds()
			if r.Again {
				warnDrawn(cmd.ErrOrStderr(), c, r.held)
			}
			if o.json {
				return writeIndented(cmd.OutOrStdout(), r)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d %s tuples, %s, of party %s in %s\n", r.Tuples, r.Kind, amount(float64(r.Bytes)), o.party, r.Dir)
			return err
		},
	}
	o.flags(cmd)
	o.partyFlag(cmd, "the party whose shares these are, by name or index")
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "directory to make, or that an interrupted fetch has left")
	f.BoolVar(&withKey, "with-mac-key", false, "draw the party's share of the MAC key, too")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// drawer draws shares over this connection.
func (c *partyClient) drawer() (*lodge.Client, error) {
	x := lodge.Config{Party: c.roster.Parties[c.index].Name}
	for _, m := range c.roster.Parties {
		x.Parties = append(x.Parties, lodge.Server{Name: m.Name, Address: m.Address, Identity: m.Identity})
	}
	return lodge.Over(x, nil, c.conn)
}

// manifest describes the shares of a reservation, and draws the share of the MAC key for it. Nothing is consumed.
func (c *partyClient) manifest(ctx context.Context, id string, withKey bool) (m tuplefile.Manifest, size int, r *tuplesv1.Reservation, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	got, err := c.GetReservation(ctx, &tuplesv1.GetReservationRequest{Id: id})
	if err != nil {
		return m, 0, nil, err
	}
	r = got.GetReservation()
	origin := lodge.Origin{Parties: len(c.roster.Parties), Party: c.index}
	epochs, err := c.keygen.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
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
		key = append([]byte{}, k.GetShare()...) // never nil: a share that is missing is an error
		defer clear(key)
	}
	m, size, err = lodge.ManifestOf(r, key, origin)
	return m, size, r, err
}

// fetch draws a reservation into a directory.
func (c *partyClient) fetch(ctx context.Context, id, dir string, withKey bool, p *terminal.Progress) (_ *fetchReport, err error) {
	if _, err := os.Lstat(filepath.Join(dir, tuplefile.ManifestName)); err == nil {
		next := "name a new directory"
		if withKey {
			next += "; while the lease lasts the same shares come once more, with the share of the MAC key: then remove the first"
		}
		return nil, rpc.Errorf(rpc.Conflict, next, "%s holds shares already", dir)
	}
	m, size, reservation, err := c.manifest(ctx, id, withKey)
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
	if err := c.copyTo(ctx, w, p, id, have, m.RecordBytes(size), total); err != nil {
		kept := w.Keep()
		if ctx.Err() != nil {
			err = rpc.Errorf(rpc.Cancelled, "the same command goes on while the lease lasts", "interrupted; %s has what came so far", dir)
		}
		return nil, errors.Join(err, kept)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &fetchReport{
		Dir: dir, Party: c.index, Reservation: id, classRecord: classJSON(reservation.GetClass()), Epoch: m.Epoch, Tuples: uint64(m.Tuples), Bytes: total,
		Resumed: have, WithMACKey: withKey, Again: have == 0 && drawn(reservation), held: reservation,
	}, nil
}

// copyTo streams the tuples after the first have into w.
func (c *partyClient) copyTo(ctx context.Context, w io.Writer, p *terminal.Progress, id string, have, record, total int64) error {
	if have*record == total {
		return nil
	}
	d, err := c.drawer()
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
