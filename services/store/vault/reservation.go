package vault

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lodge-mpc/lodge/services/store"
)

const (
	reservationPrefix = "reservation/"
	duePrefix         = "due/"

	// MaxRanges of a reservation, and MaxLease from now on.
	MaxRanges = 1024
	MaxLease  = 7 * 24 * time.Hour

	// The coordinator grants MaxLease by its own clock, of which a party's may be behind by so much.
	clockSlack = time.Hour

	maxID      = 64
	maxName    = 256 // bytes of a client's name
	maxClients = 1000

	// Withdrawn tuples wait so long for the word whether they go back into stock, from when they were withdrawn, and
	// ended reservations are remembered so long.
	withdrawnFor = 24 * time.Hour
	rememberFor  = 7 * 24 * time.Hour
)

// ReservationState of a reservation at this party.
type ReservationState string

// The states of a reservation.
const (
	Reserved  ReservationState = "reserved"
	Consumed  ReservationState = "consumed"  // went to Client, which may read again until the lease ends
	Withdrawn ReservationState = "withdrawn" // never delivered here, and never will be
	Released  ReservationState = "released"  // its tuples are back in stock
	Erased    ReservationState = "erased"
)

// Range is a span of a batch's tuples.
type Range struct {
	Batch string `json:"batch"`
	Span
}

// Reservation holds tuples for one client of this party. What is recorded of it once, ever, is what all parties must
// have in common; its digest is what they compare.
type Reservation struct {
	ID      string    `json:"id"`
	Class   Class     `json:"class"`
	Epoch   uint64    `json:"epoch"`
	MACKey  string    `json:"mac_key"`
	Ranges  []Range   `json:"ranges"`            // none of one that was released
	Tuples  uint64    `json:"tuples,omitempty"`  // of one that was released
	Owner   string    `json:"owner"`             // the client that asked for it
	Clients []string  `json:"clients,omitempty"` // who may draw it at each party; empty: who comes first
	Lease   time.Time `json:"lease"`             // no byte leaves after

	State     ReservationState `json:"state"`
	Digest    [32]byte         `json:"digest"`
	Client    string           `json:"client,omitempty"` // whom it went to
	Delivered time.Time        `json:"delivered,omitzero"`
	Withdrawn time.Time        `json:"withdrawn,omitzero"`
	// Generation of the store that recorded the delivery.
	Generation uint64 `json:"generation,omitempty"`
}

// Count of tuples.
func (r *Reservation) Count() (n uint64) {
	for _, x := range r.Ranges {
		n += x.Count
	}
	return n + r.Tuples
}

// digest binds everything that parties must have in common, and the public digests of the batches.
func (r *Reservation) digest(batches [][32]byte) [32]byte {
	h := sha256.New()
	number := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	text := func(s string) {
		number(uint64(len(s)))
		io.WriteString(h, s)
	}
	text("lodge reservation v1")
	//lodge:check vault/digest/id [drop=r.ID] [run=TestReservationDigest] the digest of a
	//  reservation does not bind its identifier
	//lodge:check vault/digest/tenant [drop=r.Class.Tenant] [run=TestReservationDigest] the digest
	//  of a reservation does not bind the tenant
	//lodge:check vault/digest/kind [drop=r.Class.Kind] [run=TestReservationDigest] the digest of a
	//  reservation does not bind the kind
	//lodge:check vault/digest/params [drop=r.Class.Params] [run=TestReservationDigest] the digest
	//  of a reservation does not bind the parameters
	//lodge:check vault/digest/field [drop=r.Class.Field] [run=TestReservationDigest] the digest of
	//  a reservation does not bind the field
	//lodge:check vault/digest/mac-key [drop=r.MACKey] [run=TestReservationDigest] the digest of a
	//  reservation does not bind the MAC key
	//lodge:check vault/digest/owner [drop=r.Owner] [run=TestReservationDigest] the digest of a
	//  reservation does not bind the owner
	for _, s := range []string{r.ID, r.Class.Tenant, r.Class.Kind, r.Class.Params, r.Class.Field, r.MACKey, r.Owner} {
		text(s)
	}
	//lodge:check vault/digest/rows [drop=r.Class.Rows] [run=TestReservationDigest] the digest of a
	//  reservation does not bind the rows
	//lodge:check vault/digest/inner [drop=r.Class.Inner] [run=TestReservationDigest] the digest of
	//  a reservation does not bind the inner dimension
	//lodge:check vault/digest/columns [drop=r.Class.Columns] [run=TestReservationDigest] the digest
	//  of a reservation does not bind the columns
	//lodge:check vault/digest/input-party [drop=r.Class.InputParty] [run=TestReservationDigest] the
	//  digest of a reservation does not bind the input party
	for _, n := range []uint32{r.Class.Rows, r.Class.Inner, r.Class.Columns, r.Class.InputParty} {
		number(uint64(n))
	}
	//lodge:check vault/digest/convolution [run=TestReservationDigest] the digest of a reservation
	//  does not bind the shape of convolutions
	if c := r.Class.Convolution; c != (Convolution{}) {
		text("convolution")
		for _, n := range []int{
			c.Channels, c.Height, c.Width, c.Outputs, c.KernelHeight, c.KernelWidth, c.StrideHeight, c.StrideWidth, c.PaddingHeight, c.PaddingWidth,
		} {
			number(uint64(n))
		}
	}
	//lodge:check vault/digest/sacrifice [run=TestReservationDigest] the digest of a reservation
	//  does not bind whether products were sacrificed
	if r.Class.NoSacrifice {
		text("no sacrifice")
	}
	//lodge:check vault/digest/epoch [run=TestReservationDigest] the digest of a reservation does
	//  not bind the epoch
	number(r.Epoch)
	//lodge:check vault/digest/lease [run=TestReservationDigest] the digest of a reservation does
	//  not bind the lease
	number(uint64(r.Lease.UnixNano()))
	number(uint64(len(r.Clients)))
	//lodge:check vault/digest/clients [run=TestReservationDigest] the digest of a reservation does
	//  not bind the clients
	for _, c := range r.Clients {
		text(c)
	}
	number(uint64(len(r.Ranges)))
	for i, x := range r.Ranges {
		//lodge:check vault/digest/batch [run=TestReservationDigest] the digest of a reservation
		//  does not bind the batches
		text(x.Batch)
		//lodge:check vault/digest/content [run=TestReservationDigest] the digest of a reservation
		//  does not bind the content of batches
		h.Write(batches[i][:])
		//lodge:check vault/digest/first [run=TestReservationDigest] the digest of a reservation
		//  does not bind the first tuple of a range
		number(x.First)
		//lodge:check vault/digest/count [run=TestReservationDigest] the digest of a reservation
		//  does not bind the number of tuples
		number(x.Count)
	}
	return [32]byte(h.Sum(nil))
}

// validate checks what can be checked without the records.
func (r *Reservation) validate(now time.Time) error {
	switch {
	//lodge:check vault/reserve/id [run=TestReserv|TestOverlap|Fuzz] an identifier that records
	//  cannot hold is accepted
	case !validID(r.ID):
		return fmt.Errorf("%w: the id of a reservation is 1 to %d of a-z, 0-9 and '-'", ErrRange, maxID)
	//lodge:check vault/reserve/clients [run=TestReserv|TestOverlap|TestNamed|Fuzz] names of clients
	//  that records cannot hold are accepted
	case !validName(r.Owner) || len(r.Clients) > maxClients || slices.ContainsFunc(r.Clients, func(c string) bool { return !validName(c) }):
		return fmt.Errorf("%w: reservation %s has clients without a name, with too long ones, or too many", ErrRange, r.ID)
	//lodge:check vault/masks/reserved-class [run=TestMasksAreForNobody] a client reserves the class
	//  of masks
	case r.Class.Kind == KindMasks:
		return fmt.Errorf("%w: reservation %s", ErrMasks, r.ID)
	//lodge:check vault/reserve/ranges [run=TestReserv|TestOverlap|Fuzz] a reservation has no
	//  ranges, or too many
	case len(r.Ranges) == 0 || len(r.Ranges) > MaxRanges:
		return fmt.Errorf("%w: %d ranges; a reservation has 1 to %d", ErrRange, len(r.Ranges), MaxRanges)
	//lodge:check vault/reserve/lease [run=TestLease|TestReserv|TestOverlap|TestInvalid|TestModel] a
	//  reservation is made whose lease has expired
	case !r.Lease.After(now):
		return fmt.Errorf("%w: the lease ended at %s", ErrExpired, r.Lease.UTC().Format(time.RFC3339))
	//lodge:check vault/reserve/longest-lease [run=TestLongestLease] a lease never expires
	case r.Lease.After(now.Add(MaxLease + clockSlack)):
		return fmt.Errorf("%w: the lease ends later than %s from now", ErrRange, MaxLease)
	}
	return nil
}

// validID: the bytes that an id may have are what keys of records and other systems take as they are.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// validName: what is not UTF-8 would be recorded as something else.
func validName(s string) bool { return len(s) <= maxName && utf8.ValidString(s) }

// Reserve records a reservation durably. It refuses tuples that any other reservation holds or held. The same again is
// answered with what is recorded.
func (v *Vault) Reserve(r Reservation) (Reservation, error) {
	invalid := r.validate(v.now()) // which does not matter to one that is recorded: its lease may have ended since
	r.State, r.Client, r.Delivered, r.Withdrawn, r.Lease = Reserved, "", time.Time{}, time.Time{}, r.Lease.UTC()
	var out Reservation
	err := v.advance(func(tx store.Tx) error {
		old, err := get[Reservation](v, tx, reservationPrefix+r.ID)
		switch {
		case err == nil:
			out = *old
			//lodge:check vault/reserve/again [return=nil] [run=TestReserveAgain] one identifier
			//  names two reservations
			return same(old, &r)
		case !errors.Is(err, ErrNotFound):
			return err
		}
		if out = r; invalid != nil {
			return invalid
		}
		if err := v.take(tx, &out); err != nil {
			return err
		}
		return v.putReservation(tx, &out, out.Lease)
	})
	return out, err
}

// same refuses another reservation under the id of an old one. Batches keep their digests, so that is all there is.
func same(old, r *Reservation) error {
	if old.State == Released && old.Lease.Equal(r.Lease) && old.Owner == r.Owner { // the rest is not recorded any more
		return nil
	}
	//lodge:check vault/reserve/again/class [drop=old.Class == r.Class] [run=TestReserveAgain] a
	//  retry with another class counts as the same reservation
	//lodge:check vault/reserve/again/epoch [drop=old.Epoch == r.Epoch] [run=TestReserveAgain] a
	//  retry with another epoch counts as the same reservation
	//lodge:check vault/reserve/again/mac-key [drop=old.MACKey == r.MACKey] [run=TestReserveAgain] a
	//  retry with another MAC key counts as the same reservation
	//lodge:check vault/reserve/again/owner [drop=old.Owner == r.Owner] [run=TestReserveAgain] a
	//  retry with another owner counts as the same reservation
	//lodge:check vault/reserve/again/ranges [drop=slices.Equal(old.Ranges, r.Ranges)]
	//  [run=TestReserveAgain] a retry with other tuples counts as the same reservation
	//lodge:check vault/reserve/again/lease [drop=old.Lease.Equal(r.Lease)] [run=TestReserveAgain] a
	//  retry with another lease counts as the same reservation
	if old.Class == r.Class && old.Epoch == r.Epoch && old.MACKey == r.MACKey && old.Owner == r.Owner && old.Lease.Equal(r.Lease) &&
		//lodge:check vault/reserve/again/clients [run=TestReserveAgain] a retry with other clients
		//  counts as the same reservation
		slices.Equal(old.Clients, r.Clients) && slices.Equal(old.Ranges, r.Ranges) {
		return nil
	}
	return fmt.Errorf("%w: reservation %s, of something else", ErrExists, r.ID)
}

// take marks the tuples of a reservation as taken, and fills in its digest.
func (v *Vault) take(tx store.Tx, r *Reservation) error {
	//lodge:check vault/reserve/quarantine [run=TestQuarantine] a store that may be an old copy
	//  makes reservations
	if err := v.trusted(tx); err != nil {
		return err
	}
	k, err := v.macKey(tx, r.MACKey)
	if err == nil {
		//lodge:check vault/reserve/mac-key [run=TestBurn|TestReserv|TestOverlap] [redundant=burning
		//  a MAC key revokes its batches in the same transaction, so nothing can be reserved]
		//  tuples under a burnt MAC key are reserved
		err = k.live()
	}
	if err == nil {
		//lodge:check vault/roster/reserve [run=TestStanding] tuples of other parties are reserved
		err = v.gives(tx, k.Epoch)
	}
	if err != nil {
		return err
	}
	held, mine := v.openBatches(tx), map[*openBatch]Spans{}
	digests := make([][32]byte, len(r.Ranges))
	for i, x := range r.Ranges {
		b, err := held.get(x.Batch)
		if err == nil {
			err = b.reservable(r, x.Span)
		}
		if err != nil {
			return err
		}
		//lodge:check vault/reserve/taken [swap=b.Taken.Within(x.Span) +
		//  mine[b].Within(x.Span)=>mine[b].Within(x.Span)]
		//  [run=TestOverlap|TestReserve|TestReservation|TestModel] a tuple of one reservation is
		//  reserved again
		//lodge:check vault/reserve/taken-twice [swap=b.Taken.Within(x.Span) +
		//  mine[b].Within(x.Span)=>b.Taken.Within(x.Span)]
		//  [run=TestOverlap|TestReserve|TestReservation|TestModel] a reservation holds one tuple
		//  twice
		if b.Taken.Within(x.Span)+mine[b].Within(x.Span) > 0 {
			return fmt.Errorf("%w: of batch %s, from %d on", ErrTaken, x.Batch, x.First)
		}
		mine[b] = mine[b].With(x.Span)
		digests[i] = b.Digest
	}
	for b, s := range mine {
		//lodge:check vault/reserve/marked [swap=b.Taken.Or(s)=>b.Taken]
		//  [run=TestOverlap|TestReserve|TestReservation|TestModel] reserved tuples are not marked
		//  as taken
		b.Taken, b.changed = b.Taken.Or(s), true
	}
	r.Digest = r.digest(digests)
	return held.flush()
}

// reservable refuses what a reservation cannot have of a batch, whoever has taken it.
func (b *Batch) reservable(r *Reservation, x Span) error {
	//lodge:check vault/masks/reserved [run=TestMasksAreForNobody] a client reserves masks
	if b.masks() {
		return fmt.Errorf("%w: batch %s", ErrMasks, b.ID)
	}
	if err := b.available(x); err != nil {
		return err
	}
	//lodge:check vault/reserve/of-another-class [drop=b.Class() != r.Class] [run=TestReservationOf]
	//  a reservation mixes classes
	//lodge:check vault/reserve/of-another-epoch [drop=b.Epoch != r.Epoch] [run=TestReservationOf] a
	//  reservation mixes epochs
	//lodge:check vault/reserve/of-another-batch-mac-key [drop=b.MACKey != r.MACKey]
	//  [run=TestReservationOf] a reservation mixes MAC keys
	if b.Class() != r.Class || b.Epoch != r.Epoch || b.MACKey != r.MACKey {
		return fmt.Errorf("%w: batch %s is of another class, epoch or MAC key", ErrRange, b.ID)
	}
	return nil
}

// available refuses a span that is not of a batch's tuples, or of a batch that gives none now.
func (b *Batch) available(x Span) error {
	switch {
	//lodge:check vault/reserve/erased [run=TestReservationOf] tuples of an erased batch are
	//  reserved
	case b.State == BatchRevoked || b.State == BatchConsumed:
		return fmt.Errorf("%w: batch %s", ErrErased, b.ID)
	//lodge:check vault/reserve/locked [run=TestReservationOf] tuples are reserved before their
	//  batch is active at every party
	case b.State != BatchAvailable:
		return fmt.Errorf("%w: batch %s is %s", ErrState, b.ID, b.State)
	//lodge:check vault/reserve/range [run=TestOverlap|TestReserv] a reservation reaches beyond its
	//  batch
	case x.Count == 0 || x.First >= b.Count || x.Count > b.Count-x.First:
		return fmt.Errorf("%w: batch %s has %d tuples", ErrRange, b.ID, b.Count)
	}
	return nil
}

// putReservation records a reservation, and when there is something to do about it next.
func (v *Vault) putReservation(tx store.Tx, r *Reservation, due time.Time) error {
	if err := put(v, tx, reservationPrefix+r.ID, r); err != nil {
		return err
	}
	return tx.Put(fmt.Sprintf("%s%020d/%s", duePrefix, due.UnixNano(), r.ID), []byte{1})
}

// reservation is the record of one within a transaction.
func (v *Vault) reservation(tx store.Tx, id string) (*Reservation, error) {
	r, err := get[Reservation](v, tx, reservationPrefix+id)
	if err != nil {
		return nil, fmt.Errorf("%w: reservation %s", err, id)
	}
	return r, nil
}

// Reservation gives the record of one.
func (v *Vault) Reservation(id string) (out Reservation, err error) {
	err = v.store.View(func(tx store.Tx) error {
		r, err := v.reservation(tx, id)
		if err == nil {
			out = *r
		}
		return err
	})
	return out, err
}

// Reservations calls f with all after an id, in order, until it says no.
func (v *Vault) Reservations(after string, f func(*Reservation) bool) error {
	return each(v, reservationPrefix, after, f)
}

// Withdraw makes sure that a reservation that was not delivered here never will be, and gives what is recorded.
func (v *Vault) Withdraw(id string) (out Reservation, err error) {
	err = v.advance(func(tx store.Tx) error {
		r, err := v.reservation(tx, id)
		if err != nil {
			return err
		}
		out = *r
		//lodge:check vault/withdraw/delivered
		//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel|TestSweep]
		//  a delivered reservation is withdrawn
		if r.State != Reserved {
			return nil
		}
		return v.withdraw(tx, &out)
	})
	return out, err
}

func (v *Vault) withdraw(tx store.Tx, r *Reservation) error {
	r.State, r.Withdrawn = Withdrawn, v.now().UTC()
	return v.putReservation(tx, r, r.waits())
}

// waits is until when a withdrawn reservation waits.
func (r *Reservation) waits() time.Time {
	if r.Withdrawn.IsZero() { // by a version that did not record when
		return r.Lease.Add(withdrawnFor)
	}
	return r.Withdrawn.Add(withdrawnFor)
}

// Release puts the tuples of a withdrawn reservation back into stock, or with discard erases them. One that was
// delivered can only be discarded, which ends its lease.
func (v *Vault) Release(id string, discard bool) (out Reservation, err error) {
	var batches []string
	err = v.advance(func(tx store.Tx) error {
		held := v.openBatches(tx)
		batches = nil
		r, err := v.reservation(tx, id)
		if err != nil {
			return err
		}
		switch {
		case r.State == Released || r.State == Erased:
		case discard:
			err = v.end(held, r)
		case r.State == Withdrawn:
			err = v.restock(held, r)
		case r.State == Consumed:
			//lodge:check vault/release/delivered [as=err = v.restock(held, r)]
			//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
			//  delivered tuples return to the stock
			err = fmt.Errorf("%w: reservation %s", ErrDelivered, id)
		default:
			//lodge:check vault/release/reserved [as=err = v.restock(held, r)]
			//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
			//  tuples that a client may still fetch return to the stock
			err = fmt.Errorf("%w: reservation %s is %s", ErrState, id, r.State)
		}
		if err == nil {
			err = held.flush()
		}
		out, batches = *r, held.ending()
		return err
	})
	return out, errors.Join(err, v.wipeAll(batches))
}

func (v *Vault) restock(held *openBatches, r *Reservation) error {
	of, err := held.of(r.Ranges)
	if err != nil {
		return err
	}
	for b, s := range of {
		damaged := b.Gone.And(s) // shares that went with those of others
		//lodge:check vault/release/damaged [swap=b.Taken.AndNot(s).Or(damaged)=>b.Taken.AndNot(s)]
		//  [run=TestReleaseOf] damaged tuples return to the stock
		b.Taken, b.changed = b.Taken.AndNot(s).Or(damaged), true
		if b.State == BatchAvailable {
			b.Lost += damaged.Count()
		} else {
			b.Lost += s.Count()
		}
	}
	r.compact()
	return v.putReservation(held.tx, r, r.remembered())
}

// compact marks a reservation as released, and drops what nobody needs of one. Its tuples are back in stock, undelivered
// here for ever; the record stays so that a proposal that comes late, or again, does not hold tuples anew while the lease
// lasts. That no tuple goes to two reservations does not depend on it: the batch says which are taken and which are gone.
func (r *Reservation) compact() {
	r.Tuples = r.Count()
	r.State, r.Ranges, r.MACKey = Released, nil, ""
}

// remembered is until when the record of an ended reservation stays. After the lease no proposal of it is accepted, by a
// clock that is not put back further than clockSlack.
func (r *Reservation) remembered() time.Time {
	if r.State == Released {
		return r.Lease.Add(clockSlack)
	}
	return r.Lease.Add(rememberFor)
}

// end records the tuples of a reservation as gone, once flushed; the shares of those that are ending are then to be
// erased.
func (v *Vault) end(held *openBatches, r *Reservation) error {
	for _, x := range r.Ranges {
		b, err := held.get(x.Batch)
		if err != nil {
			return err
		}
		if r.State != Consumed {
			b.Lost += x.Count
		}
		b.gone = append(b.gone, x.Span)
		v.owe(b.ID, time.Time{}) // also if it ends in doubt
	}
	r.State = Erased
	return v.putReservation(held.tx, r, v.now().Add(rememberFor))
}
