package demos

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// AuctionRun is one auction: among all parties, or without the killed one.
type AuctionRun struct {
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

// MultikeyReport is the outcome of `lodge demo multikey`.
type MultikeyReport struct {
	Params         string     `json:"params"`
	SecurityBits   float64    `json:"security_bits"` // against classical attacks; 0 for insecure sets
	QuantumBits    float64    `json:"quantum_security_bits"`
	Bits           int        `json:"bits"`
	Parties        []string   `json:"parties"`
	Bids           []uint64   `json:"bids"`
	KeysSeconds    float64    `json:"keys_seconds"` // of all parties concurrently
	KeyBytes       int        `json:"key_bytes"`
	SpreadSeconds  float64    `json:"spread_seconds"`
	EncryptSeconds float64    `json:"encrypt_seconds"`
	BidBytes       int        `json:"encrypted_bid_bytes"`
	MasksSeconds   float64    `json:"group_and_masks_seconds"`
	Masks          int        `json:"masks_per_quorum"`
	Evaluator      string     `json:"evaluator"`
	All            AuctionRun `json:"auction"`
	Killed         string     `json:"killed"`
	RefusedCode    string     `json:"refused_code"`
	Refused        string     `json:"refused"` // why ciphertexts under the killed party's keys are not decrypted
	Others         AuctionRun `json:"auction_of_the_others"`
	TotalSeconds   float64    `json:"total_seconds"`
}

func newMultikeyReport(c *cluster.Cluster, scheme *multikey.Scheme, set string, bits int) *MultikeyReport {
	r := &MultikeyReport{Params: set, Bits: bits}
	if !scheme.Insecure {
		least := scheme.Security().Least()
		r.SecurityBits, r.QuantumBits = least.Classical, least.Quantum
	}
	for _, m := range c.Net.Roster.Parties {
		r.Parties = append(r.Parties, m.Name)
	}
	r.Evaluator, r.Killed = r.Parties[0], r.Parties[len(r.Parties)-1]
	return r
}

// computed records the cost of computing an auction.
func (a *AuctionRun) computed(j *multikeyv1.EvaluationJob, d time.Duration) {
	cost := j.GetCost()
	a.Bootstraps, a.Rotations, a.Levels, a.ResultBytes = cost.GetBootstraps(), cost.GetRotations(), cost.GetLevels(), cost.GetResultBytes()
	a.Seconds = d.Seconds()
}

// compare records the decrypted result of an auction of the first bidders: the winner's number,
// then the price. It is correct if the auction in plaintext gives the same.
func (a *AuctionRun) compare(r *MultikeyReport, bits []uint64, bidders int) {
	number := func(bits []uint64) (n uint64) {
		for k, b := range bits {
			n |= b << k
		}
		return n
	}
	at := len(bits) - r.Bits
	winner, price := number(bits[:at]), number(bits[at:])
	wantWinner, wantPrice := secondPrice(r.Bids[:bidders])
	a.Price, a.Correct = price, winner == wantWinner && price == wantPrice
	if a.Winner = "nobody"; winner < uint64(bidders) {
		a.Winner = r.Parties[winner]
	}
}

// secondPrice holds the auction in plaintext: the first of the highest bids wins and pays the
// highest of the other bids.
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

// list joins words as in a sentence.
func list(words []string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " and " + words[n]
}

// outcome describes the result of an auction.
func (a *AuctionRun) outcome() string {
	verdict := "as in the clear"
	if !a.Correct {
		verdict = "NOT as in the clear"
	}
	return fmt.Sprintf("%s wins and pays %d, %s", a.Winner, a.Price, verdict)
}

// Print writes the report for people.
func (r *MultikeyReport) Print(w io.Writer) error {
	bids := ""
	for i, b := range r.Bids {
		bids += fmt.Sprintf("   %s: %d", r.Parties[i], b)
	}
	fmt.Fprintf(w, `
A sealed-bid auction, the second price to pay: %d parties, each with keys of its own that it made alone.
No party saw another's bid, and none the outcome: answers were sealed to whoever holds the auction.
Security of %s: %s; decryption by all owners of keys, who follow the protocol.

  bids of %d bits   %s
  outcome             %s

  own keys            %8.2f s   made by all parties at once; %s published by each
  keys spread         %8.2f s   until %s, which computes, had those of all
  bids encrypted      %8.2f s   %s each
  group and masks     %8.2f s   made beforehand: %d bits can be decrypted by all, and as many without %s
`, len(r.Parties), r.Params, security(r.SecurityBits, r.QuantumBits), r.Bits, bids, r.All.outcome(), r.KeysSeconds, amount(r.KeyBytes), r.SpreadSeconds, r.Evaluator,
		r.EncryptSeconds, amount(r.BidBytes), r.MasksSeconds, r.Masks, r.Killed)
	r.All.print(w)
	fmt.Fprintf(w, `
Then %s was killed, and what is under its keys is not decrypted any more: asked again, the client says %s,
  %s.
  without its bid     %s
`, r.Killed, r.RefusedCode, r.Refused, r.Others.outcome())
	r.Others.print(w)
	_, err := fmt.Fprintf(w, "  in all              %8.1f s\n", r.TotalSeconds)
	return err
}

// print writes the cost of an auction.
func (a *AuctionRun) print(w io.Writer) {
	fmt.Fprintf(w, `  auction computed    %8.2f s   %d bootstraps, %d rotations of one party each; a result of %s
  decrypted together  %8.2f s   by %s; %s from each
`, a.Seconds, a.Bootstraps, a.Rotations, amount(a.ResultBytes), a.DecryptSeconds, list(a.Decryptors), amount(a.AnswerBytes))
}
