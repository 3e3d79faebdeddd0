package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// listed is words as a sentence has them.
func listed(words []string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " and " + words[n]
}

// outcome is how an auction has ended.
func (a *auctionRun) outcome() string {
	verdict := "as in the clear"
	if !a.Correct {
		verdict = "NOT as in the clear"
	}
	return fmt.Sprintf("%s wins and pays %d, %s", a.Winner, a.Price, verdict)
}

func (r *multikeyReport) print(cmd *cobra.Command) error {
	security := securityRecords{Classical: r.SecurityBits, Quantum: r.QuantumBits}.sentence(r.SecurityBits == 0)
	bids := ""
	for i, b := range r.Bids {
		bids += fmt.Sprintf("   %s: %d", r.Parties[i], b)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, `
A sealed-bid auction, the second price to pay: %d parties, each with keys of its own that it made alone.
No party saw another's bid, and none the outcome: answers were sealed to whoever holds the auction.
Security of %s: %s; decryption by all owners of keys, who follow the protocol.

  bids of %d bits   %s
  outcome             %s

  own keys            %8.2f s   made by all parties at once; %s published by each
  keys spread         %8.2f s   until %s, which computes, had those of all
  bids encrypted      %8.2f s   %s each
  group and masks     %8.2f s   made beforehand: %d bits can be decrypted by all, and as many without %s
`, len(r.Parties), r.Params, security, r.Bits, bids, r.All.outcome(), r.KeysSeconds, amount(float64(r.KeyBytes)), r.SpreadSeconds, r.Evaluator,
		r.EncryptSeconds, amount(float64(r.BidBytes)), r.MasksSeconds, r.Masks, r.Killed)
	r.All.print(cmd)
	fmt.Fprintf(out, `
Then %s was killed, and what is under its keys is not decrypted any more: asked again, the client says %s,
  %s.
  without its bid     %s
`, r.Killed, r.RefusedCode, r.Refused, r.Others.outcome())
	r.Others.print(cmd)
	_, err := fmt.Fprintf(out, "  in all              %8.1f s\n", r.TotalSeconds)
	return err
}

// print writes what an auction took.
func (a *auctionRun) print(cmd *cobra.Command) {
	fmt.Fprintf(cmd.OutOrStdout(), `  auction computed    %8.2f s   %d bootstraps, %d rotations of one party each; a result of %s
  decrypted together  %8.2f s   by %s; %s from each
`, a.Seconds, a.Bootstraps, a.Rotations, amount(float64(a.ResultBytes)), a.DecryptSeconds, listed(a.Decryptors), amount(float64(a.AnswerBytes)))
}
