// Package demos holds the demonstrations of `lodge demo`. Each is a short program that uses a
// running cluster through the Go client packages, compares the result with the same computation in
// plaintext, and reports the cost.
package demos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// TriplesOptions select the tuples to make.
type TriplesOptions struct {
	Set, Field  string
	Runs        []Run
	Count       uint64       // tuples of each run, at least
	Shape       *jobv1.Shape // of matrices and convolutions, otherwise nil
	Block       uint32       // dimension of the blocks that the keys serve
	NoSacrifice bool         // leave out the sacrifice of kinds that multiply
	Shares      string       // directory for all parties' shares
	Export      string       // directory for the files of MP-SPDZ, or empty
}

// Run is a kind of tuples to make. Owner is the party that knows the values of input masks.
type Run struct {
	Kind  string
	Owner int
}

// Triples generates keys, makes tuples, draws every party's shares as its client, and checks them
// with a verifier that shares no protocol code. The check pools all MAC-key shares, so Triples
// finally retires the keys.
func Triples(ctx context.Context, c *cluster.Cluster, o TriplesOptions) (*TriplesReport, error) {
	r := &TriplesReport{Parties: len(c.Clients), Field: o.Field, Params: o.Set, NoSacrifice: o.NoSacrifice, PeakRSS: make([]uint64, len(c.Clients))}
	began := time.Now()
	keys, err := c.Job(ctx, &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: o.Set, Dim: o.Block, Purpose: jobv1.Purpose_PURPOSE_TRIPLES,
	})
	if err != nil {
		return nil, err
	}
	r.keys(keys, time.Since(began))
	began = time.Now()
	batches, err := generate(ctx, c, o, keys.GetEpoch(), r)
	if err != nil {
		return nil, err
	}
	r.generated(time.Since(began))
	err = check(ctx, c, o, batches, r)
	if err == nil && o.Export != "" && r.Verified == r.Tuples {
		err = export(ctx, c, o, batches, r)
	}
	// A check that failed may have pooled MAC-key shares too.
	return r, errors.Join(err, retire(ctx, c, keys.GetEpoch()))
}

// generate submits jobs until there are enough tuples of each run. A job makes at most one batch.
func generate(ctx context.Context, c *cluster.Cluster, o TriplesOptions, epoch uint64, r *TriplesReport) (batches []*coordinatorv1.Job, err error) {
	for _, run := range o.Runs {
		kind := job.KindOf(run.Kind)
		for made := uint64(0); made < o.Count; {
			j, err := c.Job(ctx, &coordinatorv1.JobRequest{
				Kind: kind, InputParty: uint32(run.Owner), Count: o.Count - made, Params: o.Set, Field: o.Field, Dim: o.Block, Shape: o.Shape,
				Epoch: epoch, Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: devnet.Tenant, NoSacrifice: o.NoSacrifice && job.Multiplies(kind),
			})
			if err != nil {
				return nil, err
			}
			batches = append(batches, j)
			made += j.GetParties()[0].GetStatus().GetCount()
			r.batch(j)
		}
	}
	return batches, nil
}

// check reserves each batch, downloads every party's shares and verifies them.
func check(ctx context.Context, c *cluster.Cluster, o TriplesOptions, batches []*coordinatorv1.Job, r *TriplesReport) error {
	for _, j := range batches {
		reserved, err := stockv1.NewStockServiceClient(c.Operator).Reserve(ctx, &stockv1.ReserveRequest{
			Class: lodge.ClassOf(j.GetRequest()), Count: j.GetParties()[0].GetStatus().GetCount(), Epoch: j.GetEpoch(), Wait: true,
		})
		if err != nil {
			return fmt.Errorf("reserving the tuples: %w", err)
		}
		var dirs []string
		for i, conn := range c.Clients {
			dir := shareDir(o, j, i)
			c.Progress.Say("drawing batch %s from party %d", j.GetBatchId(), i)
			if err := lodge.FetchDir(ctx, conn, reserved.GetReservation().GetId(), dir, r.origin(i)); err != nil {
				return fmt.Errorf("drawing batch %s from party %d: %w", j.GetBatchId(), i, err)
			}
			dirs = append(dirs, dir)
		}
		c.Progress.Say("checking batch %s", j.GetBatchId())
		report, err := verify.Dirs(ctx, dirs, verify.Options{})
		if err != nil {
			return err
		}
		r.Verified += uint64(report.Verified)
	}
	return nil
}

func shareDir(o TriplesOptions, j *coordinatorv1.Job, party int) string {
	return filepath.Join(o.Shares, j.GetBatchId(), "party-"+strconv.Itoa(party))
}

// export writes every party's files for MP-SPDZ from the verified shares.
func export(ctx context.Context, c *cluster.Cluster, o TriplesOptions, batches []*coordinatorv1.Job, r *TriplesReport) error {
	for i := range c.Clients {
		var from []string
		for _, j := range batches {
			from = append(from, shareDir(o, j, i))
		}
		c.Progress.Say("exporting the shares of party %d", i)
		files, err := mpspdz.Export(ctx, from, o.Export, mpspdz.ExportOptions{Pooled: true})
		if err != nil {
			return err
		}
		r.Export = append(r.Export, files)
	}
	return nil
}

// retire erases the epoch at all parties, even after an interrupt: the MAC-key shares of its
// batches have been pooled.
func retire(ctx context.Context, c *cluster.Cluster, epoch uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var errs []error
	for i, conn := range c.Clients {
		_, err := keygenv1.NewKeygenServiceClient(conn).RetireEpoch(ctx, &keygenv1.RetireEpochRequest{Epoch: epoch, Reason: "the demonstration pooled its MAC-key shares"})
		if err != nil {
			errs = append(errs, fmt.Errorf("retiring the epoch at party %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}
