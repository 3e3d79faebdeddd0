package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// thresholdReport is the outcome of `lodge demo decrypt`.
type thresholdReport struct {
	Parties          int      `json:"parties"`
	Quorum           int      `json:"quorum_size"`
	Params           string   `json:"params"`
	SecurityBits     float64  `json:"security_bits"` // against classical attacks; 0: for tests
	QuantumBits      float64  `json:"quantum_security_bits"`
	KeygenSecurity   string   `json:"keygen_security"`
	Values           int      `json:"values"`
	Correct          int      `json:"correct"`
	KeygenSeconds    float64  `json:"keygen_seconds"`
	KeygenSentBytes  uint64   `json:"keygen_sent_bytes_per_party"`
	Quorums          int      `json:"quorums"`
	Masks            int      `json:"masks_per_quorum"`
	MasksSeconds     float64  `json:"masks_seconds"`
	MasksSentBytes   float64  `json:"sent_bytes_per_mask"` // of all parties of a quorum, for one that is kept
	KeyBytes         uint64   `json:"key_bytes"`
	FetchSeconds     float64  `json:"fetch_seconds"`
	CiphertextBytes  int      `json:"ciphertext_bytes"` // of all values, before computing
	Operations       int      `json:"operations"`       // bootstraps
	ComputeSeconds   float64  `json:"compute_seconds"`
	Killed           string   `json:"killed"`
	Used             []string `json:"quorum"`
	AllUpSeconds     float64  `json:"decrypt_seconds_all_up"`
	DecryptSeconds   float64  `json:"decrypt_seconds"` // after a party was killed
	RequestBytes     int      `json:"request_bytes_per_party"`
	AnswerBytes      int      `json:"answer_bytes_per_party"`
	Failure          float64  `json:"failure_probability"`
	PaperFailure     float64  `json:"paper_form_failure_probability"`
	PaperAnswerBytes int      `json:"paper_form_answer_bytes_per_party"`
	TotalSeconds     float64  `json:"total_seconds"`
}

// demoThresholdOptions are the flags of `lodge demo decrypt` that are about t+1 of n.
type demoThresholdOptions struct {
	demoOptions
	all       bool
	threshold uint32
	values    int
}

// demoDecryptCommand is `lodge demo decrypt`.
func demoDecryptCommand() *cobra.Command {
	var o demoThresholdOptions
	cmd := &cobra.Command{
		Use:   "decrypt",
		Short: "Make threshold keys, compute on ciphertexts, kill a party, and have the others decrypt",
		Long: passiveText +
			"Start a cluster as `lodge demo` does, make threshold keys and masks for every quorum, encrypt random values as a client,\n" +
			"look each up in a table and compute gates with the public keys, sign where the results come from (parties decrypt nothing\n" +
			"else), kill one party with SIGKILL, have T+1 of the others decrypt the results, and compare.\n\n" +
			"With --all: generate keys that all parties decrypt with, encrypt a random vector with a proof that the client knows it,\n" +
			"ask every party for its message of the decryption, combine them, and compare.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.all {
				return runDemoDecrypt(cmd, &o.demoOptions)
			}
			return runDemoThreshold(cmd, &o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.parties, "parties", 3, "number of parties")
	f.Uint32Var(&o.threshold, "threshold", 0, "T: any T+1 parties decrypt (default: the largest below half of the parties)")
	f.IntVar(&o.values, "values", 16, "values to encrypt")
	f.BoolVar(&o.all, "all", false, "show decryption by all parties, of vectors over a field")
	f.StringVar(&o.field, "field", "p128", "with --all: field, p64 to p4096")
	f.StringVar(&o.params, "params", "", "parameter `set` (default "+lwe.Default+", and with --all that of `lodge demo`)")
	f.BoolVar(&o.json, "json", false, "write the result as JSON")
	f.BoolVar(&o.keep, "keep", false, "keep the working directory: configurations, logs and vaults")
	complete(cmd, "field", fieldWords)
	complete(cmd, "params", allSetWords)
	return cmd
}

// maxDemoValues bounds what is computed with; a value takes tenths of a second where there are no vector instructions.
const maxDemoValues = 1024

// check refuses flags of the other form, and what cannot succeed.
func (o *demoThresholdOptions) check(changed func(string) bool) error {
	for _, name := range []string{"threshold", "values"} {
		if o.all && changed(name) {
			return invalid("leave it out", "--%s with --all", name)
		}
	}
	if !o.all && changed("field") {
		return invalid("add --all, or leave it out: messages are from 0 to 15", "--field without --all")
	}
	if o.all {
		return nil
	}
	if o.params == "" {
		o.params = lwe.Default
	}
	if _, err := lwe.Lookup(o.params); err != nil {
		return invalid("`lodge params list` shows the sets for threshold keys", "%v", err)
	}
	if err := refuseLegacy(o.params); err != nil {
		return err
	}
	if err := checkParties(o.parties); err != nil {
		return err
	}
	if o.threshold == 0 {
		o.threshold = uint32(max(0, o.parties-1) / 2)
	}
	t := int(o.threshold)
	if t < 1 || o.parties < 2*t+1 {
		return invalid("take at least three parties, and more than twice as many as the threshold",
			"a threshold of %d among --parties %d leaves no honest majority", t, o.parties)
	}
	all := make([]uint32, o.parties)
	for i := range all {
		all[i] = uint32(i)
	}
	if n := len(quorums(all, t+1)); n > maxDemoQuorums {
		return invalid("take fewer parties", "%d of %d parties make more than %d quorums", t+1, o.parties, maxDemoQuorums)
	}
	if o.values < 1 || o.values > maxDemoValues {
		return invalid(fmt.Sprintf("write 1 to %d", maxDemoValues), "--values %d", o.values)
	}
	return nil
}

// maxDemoQuorums is how many quorums masks are made for.
const maxDemoQuorums = 40

func runDemoThreshold(cmd *cobra.Command, o *demoThresholdOptions) (err error) {
	start := time.Now()
	defer func() { err = ended(cmd, err) }()
	c, err := startCluster(cmd, clusterOptions{parties: o.parties, set: o.params, keep: o.keep})
	if err != nil {
		return err
	}
	defer c.stop()
	t := o.threshold
	r := &thresholdReport{Parties: o.parties, Quorum: int(t) + 1, Params: o.params, Values: o.values}
	began := time.Now()
	keys, err := c.job(cmd.Context(), &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: o.params, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Threshold: t, Timeout: durationpb.New(time.Hour),
	})
	if err != nil {
		return err
	}
	r.KeygenSeconds, r.KeygenSentBytes = time.Since(began).Seconds(), sentBytes(keys)/uint64(o.parties)
	if err := c.maskAll(cmd.Context(), r, keys.GetEpoch(), t); err != nil {
		return err
	}
	if err := c.useThreshold(cmd.Context(), r, keys.GetEpoch()); err != nil {
		return plain(err)
	}
	r.TotalSeconds = time.Since(start).Seconds()
	c.progress.done()
	hold(cmd)
	if o.json {
		err = writeIndented(cmd.OutOrStdout(), r)
	} else {
		err = r.print(cmd)
	}
	if err == nil && r.Correct != 2*r.Values {
		err = rpc.Errorf(checkFailed, "", "the decryption is wrong: %d of %d results are right", r.Correct, 2*r.Values)
	}
	return err
}

// sentBytes are what all parties of a job have sent.
func sentBytes(j *coordinatorv1.Job) (n uint64) {
	for _, p := range j.GetParties() {
		n += p.GetStatus().GetProgress().GetSentBytes()
	}
	return n
}

// maskAll makes masks for every quorum: more than the results take.
func (c *cluster) maskAll(ctx context.Context, r *thresholdReport, epoch uint64, t uint32) error {
	all := make([]uint32, r.Parties)
	for i := range all {
		all[i] = uint32(i)
	}
	groups, began := quorums(all, int(t)+1), time.Now()
	r.Quorums, r.Masks = len(groups), max(1000, 4*r.Values)
	var sent uint64
	for _, group := range groups {
		j, err := c.job(ctx, &coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Epoch: epoch, Params: r.Params, Group: group,
			Count: uint64(r.Masks), Form: job.MaskForms["exact"], Timeout: durationpb.New(time.Hour),
		})
		if err != nil {
			return err
		}
		sent += sentBytes(j)
	}
	r.MasksSeconds, r.MasksSentBytes = time.Since(began).Seconds(), float64(sent)/float64(r.Masks*len(groups))
	return nil
}

// useThreshold computes on ciphertexts as a client, kills a party, and has the others decrypt.
func (c *cluster) useThreshold(ctx context.Context, r *thresholdReport, epoch uint64) error {
	config, err := lodge.Load(filepath.Join(c.net.Dir, "clients", devnet.Attested+".yaml"))
	if err != nil {
		return err
	}
	client, err := threshold.Dial(config)
	if err != nil {
		return err
	}
	defer client.Close()
	client.Patience = 30 * time.Second // whoever is down on this machine says so at once
	k, err := client.Key(ctx, epoch)
	if err != nil {
		return err
	}
	r.describe(k)
	c.progress.say("fetching %s of public keys", amount(float64(k.KeyBytes)))
	began := time.Now()
	keys, err := client.EvaluationKeys(ctx, k, nil)
	if err != nil {
		return err
	}
	r.FetchSeconds = time.Since(began).Seconds()
	results, want, err := c.compute(ctx, r, k, keys)
	if err != nil {
		return err
	}
	// The program that has computed the results signs where they come from. Without its word no party decrypts them.
	evaluator, err := c.net.AttesterKey()
	if err != nil {
		return err
	}
	request := func() (*threshold.Request, error) {
		q := &threshold.Request{LWE: results}
		return q, q.Sign(k, devnet.Attester, "squares and parities", evaluator)
	}
	c.progress.say("asking %d of %d parties to decrypt what %s has signed", r.Quorum, r.Parties, devnet.Attester)
	began = time.Now()
	q, err := request()
	if err != nil {
		return err
	}
	before, err := client.Decrypt(ctx, k, q)
	if err != nil {
		return err
	}
	r.AllUpSeconds = time.Since(began).Seconds()
	first := before.Quorum // whom the client asks again, if it can
	victim := first[rand.IntN(len(first))]
	r.Killed = c.net.Roster.Parties[victim].Name
	p := c.procs[1+victim] // after the coordinator
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.done
	c.progress.say("%s is killed; asking %d of the others to decrypt", r.Killed, r.Quorum)
	began = time.Now()
	if q, err = request(); err != nil {
		return err
	}
	got, err := client.Decrypt(ctx, k, q)
	if err != nil {
		return err
	}
	r.DecryptSeconds = time.Since(began).Seconds()
	r.RequestBytes, r.AnswerBytes = len(results)*k.Scheme().LWESize(), len(got.Answers.Parts[0])
	for _, p := range got.Quorum {
		r.Used = append(r.Used, c.net.Roster.Parties[p].Name)
	}
	if slices.Contains(got.Quorum, victim) {
		return rpc.Errorf(checkFailed, "", "party %s has answered although it was killed", r.Killed)
	}
	for i, m := range want {
		if m == got.Messages[i] && m == before.Messages[i] {
			r.Correct++
		}
	}
	return nil
}

// describe says what the keys are like.
func (r *thresholdReport) describe(k *threshold.Key) {
	s := k.Scheme()
	bits := thresholdSecurity(s.Set)
	r.QuantumBits = bits.Quantum
	r.KeygenSecurity, r.KeyBytes, r.SecurityBits = k.Security, k.KeyBytes, bits.Classical
	if p, err := decrypt.ParamsOf(s, k.Threshold, true); err == nil {
		noise := s.NoiseOf(len(k.Holders), k.Threshold)
		r.PaperFailure = decrypt.FailureProbability(p.Kind, p.Modulus, p.Parties, noise.Bootstrapped())
		r.PaperAnswerBytes = decrypt.MaxAnswer(p, 2*r.Values)
	}
}

// compute encrypts random values, looks up the square of each modulo 16, and whether two neighbours are both odd. The
// results are the squares, as plain messages, and the bits; want is what they open to.
func (c *cluster) compute(ctx context.Context, r *thresholdReport, k *threshold.Key, keys *lwe.Keys) (results []*lwe.LWE, want []uint64, err error) {
	s := k.Scheme()
	values := make([]uint64, r.Values)
	for i := range values {
		values[i] = rand.Uint64N(s.P)
	}
	public, err := s.PublicKey(keys)
	if err != nil {
		return nil, nil, err
	}
	rings, err := threshold.Encrypt(k, public, values, lwe.Padded)
	if err != nil {
		return nil, nil, err
	}
	r.CiphertextBytes = len(rings) * s.RingSize()
	file := threshold.NewFile(k, rings, len(values), lwe.Padded)
	inputs, err := file.Extract()
	if err != nil {
		return nil, nil, err
	}
	squares, odd := make([]uint64, s.P), make([]uint64, s.P)
	for m := range s.P {
		squares[m], odd[m] = m*m%s.P, m%2
	}
	square, err := s.NewTable(squares, lwe.Plain)
	if err != nil {
		return nil, nil, err
	}
	parity, err := s.NewTable(odd, lwe.Boolean)
	if err != nil {
		return nil, nil, err
	}
	c.progress.say("computing %d look-ups and %d gates", 2*r.Values, r.Values)
	began := time.Now()
	evaluator, err := lwe.NewEvaluator(s, keys, runtime.NumCPU())
	if err != nil {
		return nil, nil, err
	}
	var lookups, gates []lwe.Task
	bits, both := make([]*lwe.LWE, r.Values), make([]*lwe.LWE, r.Values)
	for i, x := range inputs {
		results, bits[i], both[i] = append(results, s.NewLWE()), s.NewLWE(), s.NewLWE()
		lookups = append(lookups, lwe.Task{Dst: results[i], A: x, Table: square}, lwe.Task{Dst: bits[i], A: x, Table: parity})
	}
	for i, v := range values {
		next := (i + 1) % r.Values
		gates = append(gates, lwe.Task{Gate: lwe.And, Dst: both[i], A: bits[i], B: bits[next]})
		want = append(want, v*v%s.P)
	}
	for i, v := range values { // a bit opens as p/8 or -p/8
		if v%2 == 1 && values[(i+1)%r.Values]%2 == 1 {
			want = append(want, s.P/8)
		} else {
			want = append(want, s.P-s.P/8)
		}
	}
	for _, tasks := range [][]lwe.Task{lookups, gates} {
		if err := evaluator.Run(ctx, runtime.NumCPU(), tasks); err != nil {
			return nil, nil, err
		}
	}
	r.Operations, r.ComputeSeconds = len(lookups)+len(gates), time.Since(began).Seconds()
	return append(results, both...), want, nil
}

func (r *thresholdReport) print(cmd *cobra.Command) error {
	security := securityRecords{Classical: r.SecurityBits, Quantum: r.QuantumBits}.sentence(r.SecurityBits == 0)
	_, err := fmt.Fprintf(cmd.OutOrStdout(), `
A client computed on %d encrypted values with %s, party %s was killed, and %s decrypted: any %d of %d do.
Security: %s; honest majority at key generation, at most %d of the %d at decryption, all following the protocol.

  right               %10d of %d   squares, and whether two neighbours are odd
  key generation      %10.1f s   %s sent by each party; security of the set: %s
  masks               %10.1f s   %d for each of %d quorums, %s of traffic for each
  keys to compute     %10.1f s   %s fetched
  computing           %10.1f s   %d look-ups and gates, at the client
  decryption          %10.3f s   %d messages, by %d of %d parties that are up
  and after a kill    %10.3f s   finding out that %s is down is part of it
  request, answer     %10s     to each party, and %s from each
  failure probability %10.0g     exact masks; the paper's form would have %.1e, and answers of %s
  in all              %10.1f s
`, r.Values, r.Params, r.Killed, strings.Join(r.Used, " and "), r.Quorum, r.Parties, r.KeygenSecurity, r.Quorum-1, r.Quorum, r.Correct, 2*r.Values,
		r.KeygenSeconds, amount(float64(r.KeygenSentBytes)), security, r.MasksSeconds, r.Masks, r.Quorums, amount(r.MasksSentBytes),
		r.FetchSeconds, amount(float64(r.KeyBytes)), r.ComputeSeconds, r.Operations, r.AllUpSeconds, 2*r.Values, r.Quorum, r.Parties, r.DecryptSeconds, r.Killed,
		amount(float64(r.RequestBytes)), amount(float64(r.AnswerBytes)), r.Failure, r.PaperFailure, amount(float64(r.PaperAnswerBytes)), r.TotalSeconds)
	return err
}
