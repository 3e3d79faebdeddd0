package stock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Deliver records durably that a reservation goes to a client, and returns the reservation. party
// is the index of this party in the reservation's Clients. The same client may fetch again until
// the lease ends. first reports whether this was the first delivery.
func (v *Stock) Deliver(id, client string, party int) (out Reservation, first bool, err error) {
	return v.DeliverCharged(id, client, party, quota.NewBook(nil, v.Clock))
}

// DeliverCharged is Deliver within the client's quota. Only the first delivery counts.
func (v *Stock) DeliverCharged(id, client string, party int, book *quota.Book) (out Reservation, first bool, err error) {
	//lodge:check vault/deliver/client [tests=./services/store/vault]
	//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
	//  tuples are delivered to a client without a name
	if client == "" {
		return out, false, fmt.Errorf("%w: no client", vaulterr.ErrState)
	}
	//lodge:check vault/deliver/generation [tests=./services/store/vault] [swap=v.Advance=>v.Update]
	//  [run=TestGeneration|TestReplay] an old copy of the store can deliver the same tuples again
	//  unnoticed
	err = v.Advance(func(tx store.Tx) error {
		first = false
		held := v.openBatches(tx)
		r, err := v.reservationIn(tx, id)
		if err == nil {
			err = v.deliverable(held, r, client, party)
		}
		if err != nil {
			return err
		}
		if r.State == Reserved {
			first = true
			//lodge:check vault/deliver/quota [tests=./services/store/vault] [run=TestQuota] a
			//  client receives more tuples than its quota
			if err := v.charge(held, book, client, r); err != nil {
				return err
			}
			if r.Generation, err = v.NextGeneration(tx); err != nil {
				return err
			}
			r.State, r.Client, r.Delivered = Consumed, client, v.Clock().UTC()
			//lodge:check vault/deliver/recorded [tests=./services/store/vault]
			//  [swap=seal.Put(v.Store, tx, ReservationPrefix+id, r)=>error(nil)]
			//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
			//  the client of a delivery is not recorded
			if err := seal.Put(v.Store, tx, ReservationPrefix+id, r); err != nil {
				return err
			}
		}
		out = *r
		return nil
	})
	return out, first, err
}

// deliverable returns an error unless the reservation may go to the client.
func (v *Stock) deliverable(held *openBatches, r *Reservation, client string, party int) error {
	//lodge:check vault/deliver/quarantine [tests=./services/store/vault] [run=TestQuarantine] a
	//  store that may be an old copy delivers tuples
	if err := v.Trusted(held.tx); err != nil {
		return err
	}
	named := client
	switch {
	case len(r.Clients) == 1:
		named = r.Clients[0]
	case len(r.Clients) > 1 && party >= 0 && party < len(r.Clients):
		//lodge:check vault/deliver/index [tests=./services/store/vault] [swap=party=>0]
		//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
		//  every party delivers to the client of the first party
		named = r.Clients[party]
	case len(r.Clients) > 1:
		named = ""
	}
	switch {
	//lodge:check vault/deliver/named [tests=./services/store/vault] [swap=named != client=>named ==
	//  "nobody"]
	//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
	//  tuples are delivered to another client than they are reserved for
	//lodge:check vault/deliver/other [tests=./services/store/vault] [drop=r.State == Consumed &&
	//  r.Client != client]
	//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
	//  tuples that one client has received are delivered to another
	case named != client || r.State == Consumed && r.Client != client:
		return fmt.Errorf("%w: reservation %s", vaulterr.ErrDelivered, r.ID)
	//lodge:check vault/deliver/withdrawn [tests=./services/store/vault]
	//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
	//  withdrawn tuples are delivered
	case r.State == Withdrawn || r.State == Released:
		return fmt.Errorf("%w: reservation %s is %s", vaulterr.ErrWithdrawn, r.ID, r.State)
	//lodge:check vault/deliver/erased [tests=./services/store/vault] [drop=r.State == Erased]
	//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
	//  erased tuples are delivered
	//lodge:check vault/deliver/lease [tests=./services/store/vault]
	//  [drop=!v.Clock().Before(r.Lease)]
	//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
	//  tuples are delivered after the lease has expired
	case r.State == Erased || !v.Clock().Before(r.Lease):
		return fmt.Errorf("%w: reservation %s, at %s", vaulterr.ErrExpired, r.ID, r.Lease.Format(time.RFC3339))
	}
	k, err := v.keys.MACKeyIn(held.tx, r.MACKey)
	if err == nil {
		//lodge:check vault/deliver/mac-key [tests=./services/store/vault]
		//  [run=TestBurn|TestDeliver|TestRetire|TestModel] [redundant=burning a MAC key revokes its
		//  batches in the same transaction, so nothing can be read] tuples under a burnt MAC key
		//  are delivered
		err = k.Live()
	}
	if err == nil {
		//lodge:check vault/roster/deliver [tests=./services/store/vault] [run=TestStanding] tuples
		//  of other parties are delivered
		err = v.keys.Gives(held.tx, k.Epoch)
	}
	if err != nil {
		return err
	}
	for _, x := range r.Ranges {
		b, err := held.get(x.Batch)
		if err != nil {
			return err
		}
		//lodge:check vault/deliver/readable [tests=./services/store/vault]
		//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
		//  missing tuples are delivered
		if err := b.readable(x.Span); err != nil {
			return err
		}
	}
	return nil
}

// Shares reads the shares of a reservation that Deliver gave, from a tuple on, and says how long
// each tuple's are.
func (v *Stock) Shares(r *Reservation, from uint64) (in io.ReadCloser, tupleBytes uint64, err error) {
	out := &rangeReader{v: v, lease: r.Lease}
	err = v.Backend.View(func(tx store.Tx) error {
		held, skip := v.openBatches(tx), from
		out.left = nil
		for _, x := range r.Ranges {
			b, err := held.get(x.Batch)
			if err != nil {
				return err
			}
			tupleBytes = b.TupleBytes
			n := min(skip, x.Count)
			if skip -= n; x.Count > n {
				out.left = append(out.left, piece{b.Batch, Span{First: x.First + n, Count: x.Count - n}})
			}
		}
		if skip > 0 {
			return fmt.Errorf("%w: reservation %s has %d tuples", vaulterr.ErrRange, r.ID, r.Count())
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return out, tupleBytes, nil
}

// readable refuses the shares of tuples that are recorded as gone.
func (b *Batch) readable(x Span) error {
	if b.State != BatchAvailable || b.Gone.Within(x) > 0 {
		return fmt.Errorf("%w: of batch %s, from %d on", vaulterr.ErrGone, b.ID, x.First)
	}
	return nil
}

// watched is the record of a batch as it was last seen. It is opened again only when it was written
// since: every seal of it is another.
type watched struct {
	sealed []byte
	batch  *Batch
}

// now gives the record as it is now.
func (w *watched) now(v *Stock, id string) (*Batch, error) {
	err := v.Backend.View(func(tx store.Tx) error {
		key := BatchPrefix + id
		sealed, err := tx.Get(key)
		switch {
		case err != nil:
			return fmt.Errorf("vault: %w", err)
		case sealed == nil:
			return fmt.Errorf("%w: batch %s", vaulterr.ErrNotFound, id)
		case w.batch != nil && w.batch.ID == id && bytes.Equal(sealed, w.sealed):
			return nil
		}
		b, err := seal.Decode[Batch](v.Store, key, sealed)
		if err == nil {
			w.sealed, w.batch = bytes.Clone(sealed), b
		}
		return err
	})
	return w.batch, err
}

// piece of a reservation in one batch.
type piece struct {
	batch *Batch
	span  Span
}

// rangeReader reads one piece after the other.
type rangeReader struct {
	v     *Stock
	lease time.Time
	now   *segmentReader
	seen  watched
	left  []piece
}

func (r *rangeReader) Read(p []byte) (int, error) {
	for {
		//lodge:check vault/read/lease [tests=./services/store/vault] [run=TestLeaseEnds|TestRead]
		//  tuples are read after the lease has expired
		if !r.v.Clock().Before(r.lease) {
			return 0, fmt.Errorf("%w: at %s", vaulterr.ErrExpired, r.lease.UTC().Format(time.RFC3339))
		}
		if r.now == nil {
			if len(r.left) == 0 {
				return 0, io.EOF
			}
			s, err := r.v.OpenShelf(r.left[0].batch)
			if err != nil {
				return 0, err
			}
			id := r.left[0].batch.ID
			r.now, r.left = s.ReadSpan(r.left[0].span, func(x Span) error { return r.readable(id, x) }), r.left[1:]
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

func (r *rangeReader) readable(id string, x Span) error {
	b, err := r.seen.now(r.v, id)
	if err != nil {
		return err
	}
	//lodge:check vault/read/gone [tests=./services/store/vault] [return=nil]
	//  [run=TestRead|TestDeliverOf] tuples are read while they are erased
	return b.readable(x)
}

func (r *rangeReader) Close() error {
	if r.now == nil {
		return nil
	}
	err := r.now.Close()
	r.now = nil
	return err
}
