package demos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	mkservice "github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// auctionMasks is the number of decrypted bits that each of the two quorums has masks for.
const auctionMasks = 64

// Multikey holds sealed-bid second-price auctions. Each party generates its own keys and encrypts a
// bid; party 0 computes the auction on ciphertexts under all parties' keys. All parties decrypt the
// result, sealed to the auctioneer. Then the last party is killed: ciphertexts under its keys
// cannot be decrypted any more, and the others hold the auction without it.
func Multikey(ctx context.Context, c *cluster.Cluster, set string, bits int) (*MultikeyReport, error) {
	roster, err := mkservice.ContextOf(c.Net.Roster.Multikey)
	if err != nil {
		return nil, err
	}
	r := newMultikeyReport(c, roster.Scheme, set, bits)
	bids, err := encryptBids(ctx, c, roster.Scheme, r)
	if err != nil {
		return nil, err
	}
	began, n := time.Now(), len(r.Parties)
	group, err := c.ThresholdKeys(ctx, set, 1)
	if err != nil {
		return nil, err
	}
	for k := n; k >= n-1; k-- { // masks for all parties, and for all except the last one
		if _, err := c.Masks(ctx, set, group.GetEpoch(), cluster.Quorums(k, k, 1)[0], auctionMasks, "exact"); err != nil {
			return nil, err
		}
	}
	r.MasksSeconds, r.Masks = time.Since(began).Seconds(), auctionMasks
	a, err := newAuctioneer(c, roster.Scheme, group.GetEpoch(), bits)
	if err != nil {
		return nil, err
	}
	defer a.close()
	result, err := a.hold(ctx, r, &r.All, bids)
	if err != nil {
		return nil, err
	}
	if err := c.Party(n - 1).Kill(); err != nil {
		return nil, err
	}
	c.Progress.Say("%s is killed; asking for the same again", r.Killed)
	_, err = a.decrypt(ctx, result)
	if err == nil {
		return nil, rpc.Errorf(rpc.CheckFailed, "", "ciphertexts under the keys of %s were decrypted although it was killed", r.Killed)
	}
	e := lodge.FromError(err)
	if e.Code != lodge.Unavailable {
		return nil, err
	}
	r.RefusedCode, r.Refused = string(e.Code), e.What
	_, err = a.hold(ctx, r, &r.Others, bids[:n-1])
	return r, err
}

// encryptBids has each party generate keys and encrypt a random bid, the lowest bit first.
func encryptBids(ctx context.Context, c *cluster.Cluster, scheme *multikey.Scheme, r *MultikeyReport) (bids []mkclient.Group, err error) {
	c.Progress.Say("%d parties generate keys with %s", len(r.Parties), r.Params)
	clients := make([]*mkclient.Client, len(r.Parties))
	defer func() {
		for _, client := range clients {
			if client != nil {
				client.Close()
			}
		}
	}()
	began := time.Now()
	var group errgroup.Group
	for i := range clients {
		config, err := c.Client(devnet.ClientName(i))
		if err != nil {
			return nil, err
		}
		if clients[i], err = mkclient.Dial(config); err != nil {
			return nil, err
		}
		group.Go(func() error {
			_, err := clients[i].MakeKeys(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	r.KeysSeconds, r.KeyBytes, began = time.Since(began).Seconds(), scheme.KeySize(), time.Now()
	if err := awaitKeys(ctx, c, scheme, r); err != nil {
		return nil, err
	}
	r.SpreadSeconds, began = time.Since(began).Seconds(), time.Now()
	for i, client := range clients {
		bid := rand.Uint64N(1 << r.Bits)
		bits := make([]bool, r.Bits)
		for k := range bits {
			bits[k] = bid>>k&1 == 1
		}
		batch, err := client.Encrypt(ctx, scheme, i, 0, bits)
		if err != nil {
			return nil, err
		}
		r.Bids, bids = append(r.Bids, bid), append(bids, mkclient.Group{Batch: batch})
	}
	r.EncryptSeconds, r.BidBytes = time.Since(began).Seconds(), scheme.BatchSize(r.Bits)
	return bids, nil
}

// awaitKeys waits until the party that computes has the public keys of all parties.
func awaitKeys(ctx context.Context, c *cluster.Cluster, scheme *multikey.Scheme, r *MultikeyReport) error {
	at, conn, err := evaluatingParty(c, scheme)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		list, err := at.Published(ctx)
		if err != nil {
			return err
		}
		missing := func(k *multikeyv1.PublishedKey) bool { return !k.GetPresent() }
		present := len(slices.DeleteFunc(list, missing))
		all := present == len(r.Parties)
		if c.Progress.Show(fmt.Sprintf("%s has the public keys of %d of %d parties", r.Evaluator, present, len(r.Parties)), all); all {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
