package demos

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/kind"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
)

// Every is the kind in the report of a demonstration that makes every kind that MP-SPDZ reads.
const Every = "every"

// TriplesReport is the outcome of `lodge demo`. The caller of Triples sets Kind, Dim, InputParty
// and Out.
type TriplesReport struct {
	Parties           int      `json:"parties"`
	Kind              string   `json:"kind"`
	Field             string   `json:"field"`
	Params            string   `json:"params"`
	Dim               string   `json:"dim"`
	InputParty        *int     `json:"input_party,omitempty"`
	NoSacrifice       bool     `json:"no_sacrifice,omitempty"`
	Tuples            uint64   `json:"tuples"`
	Verified          uint64   `json:"verified"`
	KeygenSeconds     float64  `json:"keygen_seconds"`
	GenerateSeconds   float64  `json:"generate_seconds"`
	TuplesPerSecond   float64  `json:"tuples_per_second"`
	KeygenSentBytes   uint64   `json:"keygen_sent_bytes_per_party"`
	SentBytesPerTuple float64  `json:"sent_bytes_per_tuple_per_party"`
	PeakRSS           []uint64 `json:"peak_rss_bytes"`
	KeygenSecurity    string   `json:"keygen_security"`
	StatisticalBits   uint32   `json:"statistical_security_bits"`
	Rounds            uint32   `json:"rounds"`
	RetiredEpoch      uint64   `json:"retired_epoch"`
	TotalSeconds      float64  `json:"total_seconds"`
	Out               string   `json:"out,omitempty"`
	sent              uint64

	Export []*mpspdz.Report `json:"export,omitempty"`
}

func (r *TriplesReport) keys(j *coordinatorv1.Job, d time.Duration) {
	r.KeygenSeconds, r.KeygenSentBytes, r.RetiredEpoch = d.Seconds(), cluster.SentBytes(j)/uint64(r.Parties), j.GetEpoch()
	r.KeygenSecurity = j.GetParties()[0].GetStatus().GetKeygenSecurity()
	r.peaks(j)
}

func (r *TriplesReport) batch(j *coordinatorv1.Job) {
	st := j.GetParties()[0].GetStatus()
	r.Tuples += st.GetCount()
	r.StatisticalBits, r.Rounds = st.GetStatisticalSecurityBits(), max(r.Rounds, st.GetRounds())
	r.sent += cluster.SentBytes(j) / uint64(r.Parties)
	r.peaks(j)
}

func (r *TriplesReport) generated(d time.Duration) {
	r.GenerateSeconds = d.Seconds()
	r.TuplesPerSecond = float64(r.Tuples) / r.GenerateSeconds
	r.SentBytesPerTuple = float64(r.sent) / float64(r.Tuples)
}

func (r *TriplesReport) peaks(j *coordinatorv1.Job) {
	for i, p := range j.GetParties() {
		r.PeakRSS[i] = max(r.PeakRSS[i], p.GetStatus().GetPeakRssBytes())
	}
}

// origin describes the origin of a party's shares in their manifest.
func (r *TriplesReport) origin(party int) lodge.Origin {
	return lodge.Origin{Parties: r.Parties, Party: party, KeygenSecurity: r.KeygenSecurity, Pooled: true}
}

// Print writes the report for people.
func (r *TriplesReport) Print(w io.Writer) error {
	what := "tuples of every kind that MP-SPDZ reads, matrices aside,"
	if k := kind.Of(r.Kind); k.Known() {
		if what = k.Describe().Title; k.Shaped() {
			what = r.Dim + " " + what
		}
	}
	if r.NoSacrifice {
		what += ", not sacrificed,"
	}
	if r.InputParty != nil {
		what += fmt.Sprintf(" of party %d", *r.InputParty)
	}
	fmt.Fprintf(w, `
%d parties made %d %s over %s with %s; an independent check accepts %d of them.

  key generation      %10.1f s   %s sent by each party, security: %s
  generation          %10.1f s   %.1f tuples per second, %d rounds
  traffic             %10s     sent by each party for a tuple
  memory              %10s     at the party that needed most
  statistical security%10d bits after 2^20 decrypted ciphertexts
  in all              %10.1f s

The check pooled every party's share of the MAC key, so epoch %d is retired: its keys and tuples are erased.
`, r.Parties, r.Tuples, what, r.Field, r.Params, r.Verified, r.KeygenSeconds, terminal.Amount(float64(r.KeygenSentBytes)), r.KeygenSecurity,
		r.GenerateSeconds, r.TuplesPerSecond, r.Rounds, terminal.Amount(r.SentBytesPerTuple), terminal.Amount(float64(slices.Max(r.PeakRSS))),
		r.StatisticalBits, r.TotalSeconds, r.RetiredEpoch)
	if len(r.Export) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s has every party's files for MP-SPDZ:\n", r.Export[0].Dir)
	for _, f := range r.Export[0].Files {
		fmt.Fprintf(w, "  %-28s %10d records %10d usable\n", filepath.Base(f.Path), f.Records, f.Usable)
	}
	_, err := fmt.Fprint(w, `
For testing only: the directory holds all shares of the MAC key, so anyone who reads it can forge any value. In production
each party exports its own shares on its own machine, with lodge export mp-spdz.
`)
	return err
}
