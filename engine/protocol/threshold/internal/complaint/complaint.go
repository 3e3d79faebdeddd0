// Package complaint resolves the parties' complaints about dealt shares. Each party tells all
// others, for every dealer, 1 if its shares do not lie on the polynomials that the dealer
// announced, and 0 otherwise.
package complaint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Note adds the complaints of a party, one byte for each dealer, to against, which lists the
// complaining parties by dealer. The error blames the party if its list is malformed.
func Note(against [][]int, list []byte, from int) error {
	//lodge:check complaint/length [swap=len(list) != len(against)=>len(list) > len(against)] a list
	//  of complaints can leave out dealers
	if len(list) != len(against) {
		return round.Malformed(round.Party(from), errors.New("the complaints have the wrong length"))
	}
	for dealer, c := range list {
		//lodge:check complaint/self [swap=c == 1 && dealer == from=>dealer == -1] a party can
		//  complain about itself
		if c > 1 || c == 1 && dealer == from {
			return round.Malformed(round.Party(from), errors.New("a complaint is not 0 or 1, or is about its sender"))
		}
	}
	for dealer, c := range list {
		if c == 1 {
			against[dealer] = append(against[dealer], from)
		}
	}
	return nil
}

// judge identifies the party that lies about dealt shares, for this check. A party knows the liar
// in its own complaints and in complaints about itself. If one other party complains about another,
// either may lie, and both are suspects. But more complaints than the threshold, the largest
// possible number of liars, prove that the dealer is at fault.
func judge(against [][]int, self, threshold int, check string) error {
	for dealer, list := range against {
		//lodge:check complaint/dealer a dealer of wrong shares is not blamed
		if slices.Contains(list, self) || len(list) > threshold && dealer != self {
			return &round.Blame{
				Party: round.Party(dealer), Check: check,
				Reason: "dealt shares that do not lie on the polynomials that it announced",
			}
		}
	}
	//lodge:check complaint/false a party that complains about correct shares is not blamed
	if list := against[self]; len(list) > 0 {
		return &round.Blame{
			Party: round.Party(list[0]), Check: check, Reason: "complained about shares that this party dealt correctly",
		}
	}
	for dealer, list := range against {
		//lodge:check complaint/suspects the run continues after a complaint about another party
		if len(list) > 0 {
			suspects := []round.Party{round.Party(dealer), round.Party(list[0])}
			slices.Sort(suspects)
			return &round.Abort{
				Check: check, Suspects: suspects,
				Reason: fmt.Sprintf("party %d complains that party %d dealt wrong shares", list[0], dealer),
			}
		}
	}
	return nil
}

// Hearing is a step in which all parties send their complaints.
type Hearing struct {
	Session   round.Session
	Threshold int
	Name      string // of the messages
	Check     string // the check that fails if there is a complaint
	Mine      []byte // this party's complaints
}

// Hear sends this party's complaints to all others and resolves all complaints. It continues with
// next if there are none.
func Hear[R any](h Hearing, next func(context.Context) (round.Transition[R], error)) round.Transition[R] {
	return round.Next(round.Round[R](&heard[R]{h, next}), round.Broadcast(h.Name, h.Mine))
}

// heard is the round in which all parties' complaints arrive.
type heard[R any] struct {
	Hearing
	next func(context.Context) (round.Transition[R], error)
}

func (r *heard[R]) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: r.Name, MaxBytes: int64(r.Session.Parties), Broadcast: true})
}

func (r *heard[R]) Step(ctx context.Context, in round.Inbox) (round.Transition[R], error) {
	against := make([][]int, r.Session.Parties) // the complaining parties, by dealer
	for from := range against {
		list := r.Mine
		if p := round.Party(from); p != r.Session.Self {
			list = in.Bytes(p, r.Name)
		}
		if err := Note(against, list, from); err != nil {
			return round.Transition[R]{}, err
		}
	}
	//lodge:check complaint/consequence
	//  [tests=./engine/protocol/threshold/lwekeys,./engine/protocol/threshold/bgvkeys] [run=Degree]
	//  complaints about dealt shares have no effect
	if err := judge(against, int(r.Session.Self), r.Threshold, r.Check); err != nil && !r.Session.Omits(r.Check) {
		return round.Transition[R]{}, err
	}
	return r.next(ctx)
}
