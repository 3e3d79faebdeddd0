package demos

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// MaxQuorums is the largest number of quorums that Threshold makes masks for.
const MaxQuorums = 40

// Threshold generates keys that any t+1 parties decrypt with and masks for every quorum. A client
// encrypts random values, computes look-up tables and gates with the public keys, and signs the
// provenance of the results: the parties decrypt nothing else. A quorum decrypts them, one of its
// parties is killed, and another quorum decrypts them again.
func Threshold(ctx context.Context, c *cluster.Cluster, set string, t, values int) (*ThresholdReport, error) {
	r := &ThresholdReport{Parties: len(c.Clients), Quorum: t + 1, Params: set, Values: values, Masks: max(1000, 4*values)}
	began := time.Now()
	keys, err := c.ThresholdKeys(ctx, set, t)
	if err != nil {
		return nil, err
	}
	r.KeygenSeconds, r.KeygenSentBytes, began = time.Since(began).Seconds(), cluster.SentBytes(keys)/uint64(r.Parties), time.Now()
	quorums, sent := cluster.Quorums(r.Parties, r.Quorum, MaxQuorums), uint64(0)
	for _, quorum := range quorums {
		j, err := c.Masks(ctx, set, keys.GetEpoch(), quorum, r.Masks, "exact")
		if err != nil {
			return nil, err
		}
		sent += cluster.SentBytes(j)
	}
	r.Quorums, r.MasksSeconds, r.MasksSentBytes = len(quorums), time.Since(began).Seconds(), float64(sent)/float64(r.Masks*len(quorums))
	return r, useThreshold(ctx, c, r, keys.GetEpoch())
}

// useThreshold is the client's part.
func useThreshold(ctx context.Context, c *cluster.Cluster, r *ThresholdReport, epoch uint64) error {
	config, err := c.Client(devnet.Attested)
	if err != nil {
		return err
	}
	client, err := threshold.Dial(config)
	if err != nil {
		return err
	}
	defer client.Close()
	client.Patience = 30 * time.Second // a party of this machine that is down refuses connections at once
	k, err := client.Key(ctx, epoch)
	if err != nil {
		return err
	}
	r.describe(k)
	c.Progress.Say("fetching %s of public keys", amount(k.KeyBytes))
	began := time.Now()
	keys, err := client.EvaluationKeys(ctx, k, nil)
	if err != nil {
		return err
	}
	r.FetchSeconds = time.Since(began).Seconds()
	results, want, err := compute(ctx, c, r, k, keys)
	if err != nil {
		return err
	}
	before, err := decrypt(ctx, c, client, k, results, &r.AllUpSeconds)
	if err != nil {
		return err
	}
	victim := before.Quorum[rand.IntN(len(before.Quorum))] // the client prefers the quorum that it used last
	r.Killed = c.Net.Roster.Parties[victim].Name
	if err := c.Party(victim).Kill(); err != nil {
		return err
	}
	c.Progress.Note("%s is killed", r.Killed)
	after, err := decrypt(ctx, c, client, k, results, &r.DecryptSeconds)
	if err != nil {
		return err
	}
	if slices.Contains(after.Quorum, victim) {
		return rpc.Errorf(rpc.CheckFailed, "", "party %s has answered although it was killed", r.Killed)
	}
	r.RequestBytes, r.AnswerBytes = len(results)*k.Scheme().LWESize(), len(after.Answers.Parts[0])
	for _, p := range after.Quorum {
		r.Used = append(r.Used, c.Net.Roster.Parties[p].Name)
	}
	for i, m := range want {
		if m == after.Messages[i] && m == before.Messages[i] {
			r.Correct++
		}
	}
	return nil
}

// decrypt signs the provenance of the results, as the program that computed them, and has a quorum
// decrypt them.
func decrypt(ctx context.Context, c *cluster.Cluster, client *threshold.Client, k *threshold.Key, results []*lwe.LWE, seconds *float64) (*threshold.Result, error) {
	attester, err := c.Net.AttesterKey()
	if err != nil {
		return nil, err
	}
	c.Progress.Say("asking %d of %d parties to decrypt what %s has signed", k.Threshold+1, len(c.Clients), devnet.Attester)
	began := time.Now()
	q := &threshold.Request{LWE: results}
	if err := q.Sign(k, devnet.Attester, "squares and parities", attester); err != nil {
		return nil, err
	}
	d, err := client.Decrypt(ctx, k, q)
	*seconds = time.Since(began).Seconds()
	return d, err
}

// compute encrypts random values, looks up the square of each modulo 16 and its parity, and
// computes whether neighbours are both odd. The results are the squares, as plain messages, and the
// bits of the gates; want holds their plaintexts.
func compute(ctx context.Context, c *cluster.Cluster, r *ThresholdReport, k *threshold.Key, keys *lwe.Keys) (results []*lwe.LWE, want []uint64, err error) {
	inputs, values, err := encryptValues(r, k, keys)
	if err != nil {
		return nil, nil, err
	}
	s, began := k.Scheme(), time.Now()
	square, parity, err := tables(s)
	if err != nil {
		return nil, nil, err
	}
	c.Progress.Say("computing %d look-ups and %d gates", 2*r.Values, r.Values)
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
	for i := range values {
		gates = append(gates, lwe.Task{Gate: lwe.And, Dst: both[i], A: bits[i], B: bits[(i+1)%r.Values]})
	}
	for _, tasks := range [][]lwe.Task{lookups, gates} {
		if err := evaluator.Run(ctx, runtime.NumCPU(), tasks); err != nil {
			return nil, nil, err
		}
	}
	r.Operations, r.ComputeSeconds = len(lookups)+len(gates), time.Since(began).Seconds()
	return append(results, both...), plaintexts(s, values), nil
}
