package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	mkservice "github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// auctionRun is one auction of the demonstration: among all, and without the party that is killed.
type auctionRun struct {
	Winner         string   `json:"winner"`
	Price          uint64   `json:"price"`
	Correct        bool     `json:"correct"`
	Bootstraps     uint64   `json:"bootstraps"`
	Rotations      uint64   `json:"rotations"`
	Levels         uint32   `json:"levels"`
	Seconds        float64  `json:"evaluate_seconds"`
	ResultBytes    uint64   `json:"result_bytes"`
	Decryptors     []string `json:"decryptors"`
	DecryptSeconds float64  `json:"decrypt_seconds"`
	AnswerBytes    int      `json:"answer_bytes_per_party"` // sealed to the recipient
}

// multikeyReport is the outcome of `lodge demo multikey`.
type multikeyReport struct {
	Params         string     `json:"params"`
	SecurityBits   float64    `json:"security_bits"` // against classical attacks; 0: for tests
	QuantumBits    float64    `json:"quantum_security_bits"`
	Bits           int        `json:"bits"`
	Parties        []string   `json:"parties"`
	Bids           []uint64   `json:"bids"`
	KeysSeconds    float64    `json:"keys_seconds"` // of all parties, which make them at the same time
	KeyBytes       int        `json:"key_bytes"`
	SpreadSeconds  float64    `json:"spread_seconds"`
	EncryptSeconds float64    `json:"encrypt_seconds"`
	BidBytes       int        `json:"encrypted_bid_bytes"`
	MasksSeconds   float64    `json:"group_and_masks_seconds"`
	Masks          int        `json:"masks_per_quorum"`
	Evaluator      string     `json:"evaluator"`
	All            auctionRun `json:"auction"`
	Killed         string     `json:"killed"`
	RefusedCode    string     `json:"refused_code"`
	Refused        string     `json:"refused"` // why what is under the killed party's keys is not decrypted
	Others         auctionRun `json:"auction_of_the_others"`
	TotalSeconds   float64    `json:"total_seconds"`
}

// demoMultikeyOptions are the flags of `lodge demo multikey`.
type demoMultikeyOptions struct {
	parties, bits int
	params        string
	json, keep    bool
}

// maxDemoBid bounds the bits of a bid: each takes a few seconds of two processors.
const maxDemoBid = 16

// demoMasks is how many decrypted bits there are masks for, for each of the two quorums.
const demoMasks = 64

func demoMultikeyCommand() *cobra.Command {
	o := &demoMultikeyOptions{}
	cmd := &cobra.Command{
		Use:   "multikey",
		Short: "Hold a sealed-bid auction on bids under the parties' own keys, and kill a party",
		Long: "Start a cluster as `lodge demo` does. Each party makes keys by itself and encrypts a bid; one of them computes who wins\n" +
			"a second-price auction and what is paid, on ciphertexts under all parties' keys, and it is signed that the circuit made the\n" +
			"result; all of them decrypt that together, sealed to whoever holds the auction. It is compared with the auction in the\n" +
			"clear. Then a party is killed with SIGKILL: what is under its keys is not decrypted any more, and the others hold the\n" +
			"auction among themselves.\n" +
			"Decryption is secure against parties that follow the protocol.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemoMultikey(cmd, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.parties, "parties", 4, "number of parties, up to those of the set")
	f.IntVar(&o.bits, "bits", 8, "of a bid")
	f.StringVar(&o.params, "params", multikey.Default, "parameter set")
	f.BoolVar(&o.json, "json", false, "write the result as JSON")
	f.BoolVar(&o.keep, "keep", false, "keep the working directory: configurations, logs and vaults")
	complete(cmd, "params", words(multikey.Names()))
	return cmd
}

// check refuses what cannot succeed, before any process starts.
func (o *demoMultikeyOptions) check() error {
	set, err := multikey.Lookup(o.params)
	if err != nil {
		return invalid("`lodge params list` shows the sets for multi-key ciphertexts", "%v", err)
	}
	if err := refuseLegacy(o.params); err != nil {
		return err
	}
	if most := min(set.Parties, maxDemoBidders); o.parties < 3 || o.parties > most {
		return invalid(fmt.Sprintf("write 3 to %d: one of them is killed, and two are an auction", most), "--parties %d with %s", o.parties, set.Name)
	}
	if o.bits < 1 || o.bits > maxDemoBid {
		return invalid(fmt.Sprintf("write 1 to %d", maxDemoBid), "--bits %d", o.bits)
	}
	return nil
}

// maxDemoBidders is how many processes a demonstration starts.
const maxDemoBidders = 8

// multikeyRun is a demonstration under way.
type multikeyRun struct {
	*cluster
	report    *multikeyReport
	scheme    *multikey.Scheme
	bids      []mkclient.Group
	app       *mkclient.Client // of whoever holds the auction
	at        *mkclient.Party  // the party that computes, as it calls it
	recipient *threshold.Recipient
	evaluator ed25519.PrivateKey    // signs where results come from
	word      *threshold.Provenance // that it has signed last
	epoch     uint64
}

// attest signs, for the program that has had a result computed, where the result comes from.
func (d *multikeyRun) attest(ctx context.Context, result []*multikey.Ciphertext) (err error) {
	d.word, err = d.app.Attest(ctx, result, d.epoch, devnet.Attester, "second-price auction", d.evaluator)
	return err
}

// ask has the result that was attested last decrypted for the recipient. Without the attester's word no party decrypts anything.
func (d *multikeyRun) ask(ctx context.Context, result []*multikey.Ciphertext) (*mkclient.Decrypted, error) {
	return d.app.Decrypt(ctx, &mkclient.Decryption{Ciphertexts: result, Epoch: d.epoch, Recipient: d.recipient.Public(), Provenance: d.word})
}

func runDemoMultikey(cmd *cobra.Command, o *demoMultikeyOptions) (err error) {
	start := time.Now()
	defer func() { err = ended(cmd, err) }()
	if err := o.check(); err != nil {
		return err
	}
	c, err := startCluster(cmd, clusterOptions{parties: o.parties, set: o.params, multikey: true, keep: o.keep})
	if err != nil {
		return err
	}
	defer c.stop()
	r := &multikeyReport{Params: o.params, Bits: o.bits}
	d := &multikeyRun{cluster: c, report: r}
	if err := d.open(); err != nil {
		return plain(err)
	}
	defer d.app.Close()
	if err := d.hold(cmd.Context()); err != nil {
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
	if err == nil && !(r.All.Correct && r.Others.Correct) {
		err = rpc.Errorf(checkFailed, "", "an auction did not end as in the clear")
	}
	return err
}

// open prepares what all steps use.
func (d *multikeyRun) open() error {
	context, err := mkservice.ContextOf(d.net.Roster.Multikey)
	if err != nil {
		return err
	}
	d.scheme = context.Scheme
	r := d.report
	if !d.scheme.Insecure {
		bits := d.scheme.Security().Least()
		r.SecurityBits, r.QuantumBits = bits.Classical, bits.Quantum
	}
	for _, m := range d.net.Roster.Parties {
		r.Parties, r.Bids = append(r.Parties, m.Name), append(r.Bids, rand.Uint64N(1<<r.Bits))
	}
	r.Evaluator, r.Killed = r.Parties[0], r.Parties[len(r.Parties)-1]
	if d.recipient, err = threshold.NewRecipient(); err != nil {
		return err
	}
	config, err := lodge.Load(filepath.Join(d.net.Dir, "clients", devnet.Attested+".yaml"))
	if err != nil {
		return err
	}
	if d.app, err = mkclient.Dial(config); err != nil {
		return err
	}
	d.app.Threshold.Patience = 30 * time.Second // whoever is down on this machine says so at once
	if d.evaluator, err = d.net.AttesterKey(); err != nil {
		return err
	}
	if config, err = lodge.Load(filepath.Join(d.net.Dir, "clients", devnet.App+".yaml")); err != nil { // which may compute
		return err
	}
	conn, err := config.Connect(config.Parties[0])
	if err != nil {
		return err
	}
	d.clients = append(d.clients, conn) // which are closed at the end
	d.at = mkclient.At(conn, d.scheme)
	return nil
}

// hold does all that is shown.
func (d *multikeyRun) hold(ctx context.Context) error {
	r := d.report
	if err := d.makeKeys(ctx); err != nil {
		return err
	}
	if err := d.encrypt(ctx); err != nil {
		return err
	}
	if err := d.makeMasks(ctx); err != nil {
		return err
	}
	n := len(r.Parties)
	all, err := d.evaluate(ctx, &r.All, n)
	if err != nil {
		return err
	}
	d.progress.say("%s decrypt who wins and the price", strings.Join(r.Parties, ", "))
	if err := d.decrypt(ctx, &r.All, all, n); err != nil {
		return err
	}
	p := d.procs[n] // after the coordinator and the other parties
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.done
	d.progress.say("%s is killed; asking for the same again", r.Killed)
	_, err = d.ask(ctx, all)
	if err == nil {
		return rpc.Errorf(checkFailed, "", "ciphertexts under the keys of %s were decrypted although it was killed", r.Killed)
	}
	e := lodge.FromError(err)
	if e.Code != lodge.Unavailable {
		return err
	}
	r.RefusedCode, r.Refused = string(e.Code), e.What
	others, err := d.evaluate(ctx, &r.Others, n-1)
	if err != nil {
		return err
	}
	return d.decrypt(ctx, &r.Others, others, n-1)
}

// own is the client of a party.
func (d *multikeyRun) own(party int) (*mkclient.Client, error) {
	config, err := lodge.Load(filepath.Join(d.net.Dir, "clients", devnet.ClientName(party)+".yaml"))
	if err != nil {
		return nil, err
	}
	return mkclient.Dial(config)
}

// makeKeys has each party make keys of its own, and waits until the one that computes has those of all.
func (d *multikeyRun) makeKeys(ctx context.Context) error {
	r, began := d.report, time.Now()
	d.progress.say("%d parties make keys of their own, with %s", len(r.Parties), r.Params)
	errs := make([]error, len(r.Parties))
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			c, err := d.own(i)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			_, errs[i] = c.MakeKeys(ctx, i)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	r.KeysSeconds, r.KeyBytes, began = time.Since(began).Seconds(), d.scheme.KeySize(), time.Now()
	for {
		list, err := d.at.Published(ctx)
		if err != nil {
			return err
		}
		here := 0
		for _, k := range list {
			if k.GetPresent() {
				here++
			}
		}
		d.progress.show(fmt.Sprintf("%s has the public keys of %d of %d parties", r.Evaluator, here, len(r.Parties)), here == len(r.Parties))
		if here == len(r.Parties) {
			r.SpreadSeconds = time.Since(began).Seconds()
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// encrypt has each party encrypt its bid, the lowest bit first.
func (d *multikeyRun) encrypt(ctx context.Context) error {
	r, began := d.report, time.Now()
	for i, bid := range r.Bids {
		bits := make([]bool, r.Bits)
		for k := range bits {
			bits[k] = bid>>k&1 == 1
		}
		c, err := d.own(i)
		if err != nil {
			return err
		}
		batch, err := c.Encrypt(ctx, d.scheme, i, 0, bits)
		c.Close()
		if err != nil {
			return err
		}
		d.bids = append(d.bids, mkclient.Group{Batch: batch})
	}
	r.EncryptSeconds, r.BidBytes = time.Since(began).Seconds(), d.scheme.BatchSize(r.Bits)
	return nil
}

// makeMasks makes the group that decrypts, and masks for all parties and for all but the one that will be killed.
func (d *multikeyRun) makeMasks(ctx context.Context) error {
	r, began := d.report, time.Now()
	q := &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: r.Params, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Threshold: 1, Timeout: durationpb.New(time.Hour),
	}
	group, err := d.job(ctx, q)
	if err != nil {
		return err
	}
	d.epoch, r.Masks = group.GetEpoch(), demoMasks
	for n := len(r.Parties); n >= len(r.Parties)-1; n-- {
		quorum := make([]uint32, n)
		for i := range quorum {
			quorum[i] = uint32(i)
		}
		if _, err := d.job(ctx, &coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Epoch: d.epoch, Params: r.Params, Group: quorum,
			Count: demoMasks, Form: job.MaskForms["exact"], Timeout: durationpb.New(time.Hour),
		}); err != nil {
			return err
		}
	}
	r.MasksSeconds = time.Since(began).Seconds()
	return nil
}

// evaluate computes the auction of the first parties.
func (d *multikeyRun) evaluate(ctx context.Context, a *auctionRun, bidders int) ([]*multikey.Ciphertext, error) {
	began := time.Now()
	groups, j, err := d.at.Evaluate(ctx, &mkclient.Request{Netlist: circuit.SecondPrice(bidders, d.report.Bits), Inputs: d.bids[:bidders]},
		func(j *multikeyv1.EvaluationJob) {
			done, gates := j.GetDone(), j.GetCost().GetGates()
			line := fmt.Sprintf("%s computes the auction of %d: %d of %d gates", d.report.Evaluator, bidders, done, gates)
			if spent := time.Since(began).Seconds(); done > 0 && done < gates {
				line += fmt.Sprintf(", %.0f s left", spent*float64(gates-done)/float64(done))
			}
			d.progress.show(line, done == 0)
		})
	if err != nil {
		return nil, err
	}
	cost := j.GetCost()
	a.Bootstraps, a.Rotations, a.Levels, a.ResultBytes = cost.GetBootstraps(), cost.GetRotations(), cost.GetLevels(), cost.GetResultBytes()
	a.Seconds = time.Since(began).Seconds()
	return mkclient.Ciphertexts(groups), nil
}

// decrypt has the first parties decrypt an auction's result for the recipient, and compares it with the auction in the clear.
func (d *multikeyRun) decrypt(ctx context.Context, a *auctionRun, result []*multikey.Ciphertext, bidders int) error {
	r := d.report
	if err := d.attest(ctx, result); err != nil {
		return err
	}
	began := time.Now()
	got, err := d.ask(ctx, result)
	if err != nil {
		return err
	}
	bits := make([]uint64, len(result))
	for part, answers := range got.Answers {
		opened, err := d.recipient.Open(answers)
		if err != nil {
			return err
		}
		for k, i := range got.Places[part] {
			bits[i] = opened[k]
		}
		a.AnswerBytes += len(answers.Parts[0])
	}
	a.DecryptSeconds = time.Since(began).Seconds()
	for i, name := range r.Parties {
		if slices.ContainsFunc(got.Quorums, func(q []int) bool { return slices.Contains(q, i) }) {
			a.Decryptors = append(a.Decryptors, name)
		}
	}
	number := func(bits []uint64) (n uint64) {
		for k, b := range bits {
			n |= b << k
		}
		return n
	}
	at := len(bits) - r.Bits // the winner's number comes first
	winner, price := number(bits[:at]), number(bits[at:])
	wantWinner, wantPrice := secondPrice(r.Bids[:bidders])
	a.Price, a.Correct = price, winner == wantWinner && price == wantPrice
	if a.Winner = "nobody"; winner < uint64(bidders) {
		a.Winner = r.Parties[winner]
	}
	return nil
}

// secondPrice is the auction in the clear: the first of the highest bids wins, and pays the highest of the others.
func secondPrice(bids []uint64) (winner, price uint64) {
	for i, bid := range bids {
		if bid > bids[winner] {
			winner = uint64(i)
		}
	}
	for i, bid := range bids {
		if uint64(i) != winner {
			price = max(price, bid)
		}
	}
	return winner, price
}
