package vault

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/quota"
	"github.com/lodge-mpc/lodge/services/store"
)

// Deliver records durably that a reservation goes to a client of this party, whose index in Clients is party, and gives
// it. The same client may ask again until the lease ends. first says whether this was the first time.
func (v *Vault) Deliver(id, client string, party int) (out Reservation, first bool, err error) {
	return v.DeliverCharged(id, client, party, quota.NewBook(nil, v.now))
}

// DeliverCharged is Deliver within the client's quota, which the first time counts against.
func (v *Vault) DeliverCharged(id, client string, party int, book *quota.Book) (out Reservation, first bool, err error) {
	if client == "" {
		return out, false, fmt.Errorf("%w: no client", ErrState)
	}
	err = v.advance(func(tx store.Tx) error {
		first = false
		r, err := v.reservation(tx, id)
		if err == nil {
			err = v.deliverable(tx, r, client, party)
		}
		if err != nil {
			return err
		}
		if r.State == Reserved {
			first = true
			if err := v.charge(tx, book, client, r); err != nil {
				return err
			}
			if r.Generation, err = v.next(tx); err != nil {
				return err
			}
			r.State, r.Client, r.Delivered = Consumed, client, v.now().UTC()
			if err := put(v, tx, reservationPrefix+id, r); err != nil {
				return err
			}
		}
		out = *r
		return nil
	})
	return out, first, err
}

// deliverable says what keeps a reservation from going to a client, if anything.
func (v *Vault) deliverable(tx store.Tx, r *Reservation, client string, party int) error {
	if err := v.trusted(tx); err != nil {
		return err
	}
	named := client
	switch {
	case len(r.Clients) == 1:
		named = r.Clients[0]
	case len(r.Clients) > 1 && party >= 0 && party < len(r.Clients):
		named = r.Clients[party]
	case len(r.Clients) > 1:
		named = ""
	}
	switch {
	case named != client || r.State == Consumed && r.Client != client:
		return fmt.Errorf("%w: reservation %s", ErrDelivered, r.ID)
	case r.State == Withdrawn || r.State == Released:
		return fmt.Errorf("%w: reservation %s is %s", ErrWithdrawn, r.ID, r.State)
	case r.State == Erased || !v.now().Before(r.Lease):
		return fmt.Errorf("%w: reservation %s, at %s", ErrExpired, r.ID, r.Lease.Format(time.RFC3339))
	}
	k, err := v.macKey(tx, r.MACKey)
	if err == nil {
		err = k.active()
	}
	if err == nil && r.State == Reserved && len(k.Exposed) > 0 {
		err = fmt.Errorf("%w: MAC key %s", ErrExposed, k.ID)
	}
	if err != nil {
		return err
	}
	for _, x := range r.Ranges {
		b, err := v.batch(tx, x.Batch)
		if err != nil {
			return err
		}
		if err := b.readable(x.Span); err != nil {
			return err
		}
	}
	return nil
}

// Shares reads the shares of a reservation that Deliver gave, from a tuple on, and says how long each tuple's are.
func (v *Vault) Shares(r *Reservation, from uint64) (in io.ReadCloser, tupleBytes uint64, err error) {
	out := &rangeReader{v: v, lease: r.Lease}
	for _, x := range r.Ranges {
		skip := min(from, x.Count)
		from -= skip
		b, err := v.Batch(x.Batch)
		if err != nil {
			return nil, 0, err
		}
		tupleBytes = b.TupleBytes
		if x.Count > skip {
			out.left = append(out.left, piece{b, Span{First: x.First + skip, Count: x.Count - skip}})
		}
	}
	if from > 0 {
		return nil, 0, fmt.Errorf("%w: reservation %s has %d tuples", ErrRange, r.ID, r.Count())
	}
	return out, tupleBytes, nil
}

// readable refuses the shares of tuples that are recorded as gone.
func (b *Batch) readable(x Span) error {
	if b.State != BatchAvailable || b.Gone.Within(x) > 0 {
		return fmt.Errorf("%w: of batch %s, from %d on", ErrErased, b.ID, x.First)
	}
	return nil
}

func (v *Vault) readable(batch string, x Span) error {
	b, err := v.Batch(batch)
	if err != nil {
		return err
	}
	return b.readable(x)
}

// piece of a reservation in one batch.
type piece struct {
	batch Batch
	span  Span
}

// rangeReader reads one piece after the other.
type rangeReader struct {
	v     *Vault
	lease time.Time
	now   *segmentReader
	left  []piece
}

func (r *rangeReader) Read(p []byte) (int, error) {
	for {
		if !r.v.now().Before(r.lease) {
			return 0, fmt.Errorf("%w: at %s", ErrExpired, r.lease.UTC().Format(time.RFC3339))
		}
		if r.now == nil {
			if len(r.left) == 0 {
				return 0, io.EOF
			}
			s, err := r.v.openShelf(&r.left[0].batch)
			if err != nil {
				return 0, err
			}
			id := r.left[0].batch.ID
			r.now, r.left = s.read(r.left[0].span, func(x Span) error { return r.v.readable(id, x) }), r.left[1:]
		}
		n, err := r.now.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := r.Close(); err != nil {
			return 0, err
		}
	}
}

func (r *rangeReader) Close() error {
	if r.now == nil {
		return nil
	}
	err := r.now.Close()
	r.now = nil
	return err
}
