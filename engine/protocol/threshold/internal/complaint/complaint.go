// Package complaint judges what parties say about the shares that they were dealt. Each tells all, of every dealer, 1 if
// what it was given is not of the polynomials that the dealer announced, and 0 otherwise.
package complaint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Note enters the complaints of a party, one byte for each dealer, in against, which lists who complains by dealer. The
// error blames the party for a list that is none.
func Note(against [][]int, list []byte, from int) error {
	//lodge:check complaint/length [swap=len(list) != len(against)=>len(list) > len(against)] a list
	//  of complaints can leave out dealers
	if len(list) != len(against) {
		return round.Malformed(round.Party(from), errors.New("complaints of the wrong length"))
	}
	for dealer, c := range list {
		//lodge:check complaint/self [swap=c == 1 && dealer == from=>dealer == -1] a party can
		//  complain about itself
		if c > 1 || c == 1 && dealer == from {
			return round.Malformed(round.Party(from), errors.New("a complaint that is none"))
		}
	}
	for dealer, c := range list {
		if c == 1 {
			against[dealer] = append(against[dealer], from)
		}
	}
	return nil
}

// judge names who is wrong about what was dealt, for this check. A party knows of its own complaints and of those
// against itself who lies. Of two others the one or the other does; but more complaints than there may be liars, the
// threshold, convict a dealer.
func judge(against [][]int, self, threshold int, check string) error {
	for dealer, list := range against {
		//lodge:check complaint/dealer a dealer of wrong shares is not blamed
		if slices.Contains(list, self) || len(list) > threshold && dealer != self {
			return &round.Blame{
				Party: round.Party(dealer), Check: check,
				Reason: "dealt shares that are not of the polynomials it announced",
			}
		}
	}
	//lodge:check complaint/false a party that complains about correct shares is not blamed
	if list := against[self]; len(list) > 0 {
		return &round.Blame{
			Party: round.Party(list[0]), Check: check, Reason: "complains of shares that this party dealt right",
		}
	}
	for dealer, list := range against {
		//lodge:check complaint/suspects the run continues after a complaint about another party
		if len(list) > 0 {
			suspects := []round.Party{round.Party(dealer), round.Party(list[0])}
			slices.Sort(suspects)
			return &round.Abort{
				Check: check, Suspects: suspects,
				Reason: fmt.Sprintf("party %d says that party %d dealt wrong shares", list[0], dealer),
			}
		}
	}
	return nil
}

// Hearing is where all parties complain.
type Hearing struct {
	Session   round.Session
	Threshold int
	Name      string // of the messages
	Check     string // that fails if there is a complaint
	Mine      []byte // this party's complaints
}

// Hear has all parties tell their complaints and judges them; next follows if there are none.
func Hear[R any](h Hearing, next func(context.Context) (round.Transition[R], error)) round.Transition[R] {
	return round.Next(round.Round[R](&heard[R]{h, next}), round.Broadcast(h.Name, h.Mine))
}

// heard waits for all parties' complaints.
type heard[R any] struct {
	Hearing
	next func(context.Context) (round.Transition[R], error)
}

func (r *heard[R]) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: r.Name, MaxBytes: int64(r.Session.Parties), Broadcast: true})
}

func (r *heard[R]) Step(ctx context.Context, in round.Inbox) (round.Transition[R], error) {
	against := make([][]int, r.Session.Parties) // who complains, by dealer
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
	//  [tests=./engine/protocol/threshold/keygen,./engine/protocol/threshold/bgvkeys] [run=Degree]
	//  complaints about dealt shares have no effect
	if err := judge(against, int(r.Session.Self), r.Threshold, r.Check); err != nil && !r.Session.Hooks.Skips(r.Check) {
		return round.Transition[R]{}, err
	}
	return r.next(ctx)
}
