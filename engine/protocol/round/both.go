package round

import "context"

// Results holds the results of two chains.
type Results[A, B any] struct {
	First  A
	Second B
}

// Both runs two chains in the same rounds. Their messages must have different names. A chain that
// ends first waits for the other; an error of either ends both, and the first chain's counts if
// both fail.
func Both[A, B any](a Transition[A], b Transition[B]) Transition[Results[A, B]] {
	send := append(append([]Message(nil), a.Send...), b.Send...)
	if a.Done != nil && b.Done != nil {
		done := Done(Results[A, B]{*a.Done, *b.Done})
		if len(send) == 0 {
			return done
		}
		return Next(Local(func(context.Context) (Transition[Results[A, B]], error) { return done, nil }), send...)
	}
	r := both[A, B]{a: a, b: b, second: map[string]bool{}}
	if b.Next != nil {
		for _, w := range b.Next.Wants() {
			r.second[w.Name] = true
		}
	}
	return Next(Round[Results[A, B]](r), send...)
}

type both[A, B any] struct {
	a      Transition[A]
	b      Transition[B]
	second map[string]bool // names of the messages that the second chain wants
}

func (r both[A, B]) Wants() (list []Want) {
	if r.a.Next != nil {
		list = append(list, r.a.Next.Wants()...)
	}
	if r.b.Next != nil {
		list = append(list, r.b.Next.Wants()...)
	}
	return list
}

func (r both[A, B]) streams() bool {
	return r.a.Next != nil && streams(r.a.Next) || r.b.Next != nil && streams(r.b.Next)
}

func (r both[A, B]) Frame(ctx context.Context, from Party, name string, index int, last bool, frame []byte) error {
	if r.second[name] {
		return r.b.Next.(Streamer).Frame(ctx, from, name, index, last, frame)
	}
	return r.a.Next.(Streamer).Frame(ctx, from, name, index, last, frame)
}

func (r both[A, B]) Step(ctx context.Context, in Inbox) (Transition[Results[A, B]], error) {
	a, b := Transition[A]{Done: r.a.Done}, Transition[B]{Done: r.b.Done}
	var err error
	if r.a.Next != nil {
		if a, err = r.a.Next.Step(ctx, in); err != nil {
			return Transition[Results[A, B]]{}, err
		}
	}
	if r.b.Next != nil {
		if b, err = r.b.Next.Step(ctx, in); err != nil {
			return Transition[Results[A, B]]{}, err
		}
	}
	return Both(a, b), nil
}
