package demos

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// auctioneer has a party compute auctions and is the recipient of their results.
type auctioneer struct {
	cluster   *cluster.Cluster
	client    *mkclient.Client
	party     *mkclient.Party // the party that computes
	conn      *grpc.ClientConn
	recipient *threshold.Recipient
	attester  ed25519.PrivateKey    // signs the provenance of results
	word      *threshold.Provenance // of the last result
	epoch     uint64
	bits      int // of a bid
}

func newAuctioneer(c *cluster.Cluster, scheme *multikey.Scheme, epoch uint64, bits int) (*auctioneer, error) {
	a := &auctioneer{cluster: c, epoch: epoch, bits: bits}
	var err error
	if a.recipient, err = threshold.NewRecipient(); err != nil {
		return nil, err
	}
	if a.attester, err = c.Net.AttesterKey(); err != nil {
		return nil, err
	}
	config, err := c.Client(devnet.Attested)
	if err != nil {
		return nil, err
	}
	if a.client, err = mkclient.Dial(config); err != nil {
		return nil, err
	}
	a.client.Threshold.Patience = 30 * time.Second // on one machine a party that is down refuses connections at once
	if a.party, a.conn, err = evaluatingParty(c, scheme); err != nil {
		a.client.Close()
		return nil, err
	}
	return a, nil
}

func (a *auctioneer) close() {
	a.client.Close()
	a.conn.Close()
}

// evaluatingParty connects to party 0 as a client that may compute circuits.
func evaluatingParty(c *cluster.Cluster, scheme *multikey.Scheme) (*mkclient.Party, *grpc.ClientConn, error) {
	config, err := c.Client(devnet.App)
	if err != nil {
		return nil, nil, err
	}
	conn, err := config.Connect(config.Parties[0])
	if err != nil {
		return nil, nil, err
	}
	return mkclient.At(conn, scheme), conn, nil
}

// hold computes the auction of the bids and decrypts its result for the auctioneer. It returns the
// encrypted result.
func (a *auctioneer) hold(ctx context.Context, r *MultikeyReport, run *AuctionRun, bids []mkclient.Group) ([]*multikey.Ciphertext, error) {
	began := time.Now()
	request := &mkclient.Request{Netlist: circuit.SecondPrice(len(bids), a.bits), Inputs: bids}
	groups, j, err := a.party.Evaluate(ctx, request, func(j *multikeyv1.EvaluationJob) {
		done, gates := j.GetDone(), j.GetCost().GetGates()
		line := fmt.Sprintf("%s computes the auction of %d: %d of %d gates", r.Evaluator, len(bids), done, gates)
		if spent := time.Since(began).Seconds(); done > 0 && done < gates {
			line += fmt.Sprintf(", %.0f s left", spent*float64(gates-done)/float64(done))
		}
		a.cluster.Progress.Show(line, done == 0)
	})
	if err != nil {
		return nil, err
	}
	run.computed(j, time.Since(began))
	result := mkclient.Ciphertexts(groups)
	if a.word, err = a.client.Attest(ctx, result, a.epoch, devnet.Attester, "second-price auction", a.attester); err != nil {
		return nil, err
	}
	a.cluster.Progress.Say("%s decrypt who wins and the price", strings.Join(r.Parties[:len(bids)], ", "))
	began = time.Now()
	got, err := a.decrypt(ctx, result)
	if err != nil {
		return nil, err
	}
	opened, err := a.open(got, len(result), run)
	if err != nil {
		return nil, err
	}
	run.DecryptSeconds = time.Since(began).Seconds()
	for i, name := range r.Parties {
		if slices.ContainsFunc(got.Quorums, func(q []int) bool { return slices.Contains(q, i) }) {
			run.Decryptors = append(run.Decryptors, name)
		}
	}
	run.compare(r, opened, len(bids))
	return result, nil
}

// decrypt asks the parties to decrypt the last attested result for the recipient. Parties decrypt
// nothing without the attester's word.
func (a *auctioneer) decrypt(ctx context.Context, result []*multikey.Ciphertext) (*mkclient.Decrypted, error) {
	return a.client.Decrypt(ctx, &mkclient.Decryption{Ciphertexts: result, Epoch: a.epoch, Recipient: a.recipient.Public(), Provenance: a.word})
}

// open combines the parties' sealed answers to the bits of the result.
func (a *auctioneer) open(got *mkclient.Decrypted, size int, run *AuctionRun) ([]uint64, error) {
	bits := make([]uint64, size)
	for part, answers := range got.Answers {
		opened, err := a.recipient.Open(answers)
		if err != nil {
			return nil, err
		}
		for k, i := range got.Places[part] {
			bits[i] = opened[k]
		}
		run.AnswerBytes += len(answers.Parts[0])
	}
	return bits, nil
}
