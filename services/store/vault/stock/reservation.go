package stock

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	ReservationPrefix = "reservation/"
	DuePrefix         = "due/"

	// MaxRanges of a reservation, and MaxLease from now on.
	MaxRanges = 1024
	MaxLease  = 7 * 24 * time.Hour

	// The coordinator grants MaxLease by its own clock, of which a party's may be behind by so
	// much.
	ClockSlack = time.Hour

	maxID = 64

	// Withdrawn tuples wait withdrawnFor, from the withdrawal, for the decision whether they return
	// to the stock. Ended reservations are remembered for rememberFor.
	WithdrawnFor = 24 * time.Hour
	RememberFor  = 7 * 24 * time.Hour
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

// Reservation holds tuples for one client of this party. Its content is recorded only once, and is
// the same at all parties; the parties compare its digest.
type Reservation struct {
	ID      string    `json:"id"`
	Class   Class     `json:"class"`
	Epoch   uint64    `json:"epoch"`
	MACKey  string    `json:"mac_key"`
	Ranges  []Range   `json:"ranges"`            // empty after the release
	Tuples  uint64    `json:"tuples,omitempty"`  // number of tuples, set by the release
	Owner   string    `json:"owner"`             // the client that made the reservation
	Clients []string  `json:"clients,omitempty"` // clients that may fetch it, by party; empty: the first that fetches
	Lease   time.Time `json:"lease"`             // the party sends no share afterwards

	State     ReservationState `json:"state"`
	Digest    [32]byte         `json:"digest"`
	Client    string           `json:"client,omitempty"` // the client that received it
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

// ComputeDigest binds everything that parties must have in common, and the public digests of the
// batches.
func (r *Reservation) ComputeDigest(batches [][32]byte) [32]byte {
	h := sha256.New()
	number := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	text := func(s string) {
		number(uint64(len(s)))
		io.WriteString(h, s)
	}
	text("lodge reservation v1")
	//lodge:check vault/digest/id [tests=./services/store/vault] [drop=r.ID]
	//  [run=TestReservationDigest] the digest of a reservation does not bind its identifier
	//lodge:check vault/digest/tenant [tests=./services/store/vault] [drop=r.Class.Tenant]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the tenant
	//lodge:check vault/digest/kind [tests=./services/store/vault] [drop=r.Class.Kind]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the kind
	//lodge:check vault/digest/params [tests=./services/store/vault] [drop=r.Class.Params]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the parameters
	//lodge:check vault/digest/field [tests=./services/store/vault] [drop=r.Class.Field]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the field
	//lodge:check vault/digest/mac-key [tests=./services/store/vault] [drop=r.MACKey]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the MAC key
	//lodge:check vault/digest/owner [tests=./services/store/vault] [drop=r.Owner]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the owner
	for _, s := range []string{r.ID, r.Class.Tenant, r.Class.Kind, r.Class.Params, r.Class.Field, r.MACKey, r.Owner} {
		text(s)
	}
	//lodge:check vault/digest/rows [tests=./services/store/vault] [drop=r.Class.Rows]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the rows
	//lodge:check vault/digest/inner [tests=./services/store/vault] [drop=r.Class.Inner]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the inner dimension
	//lodge:check vault/digest/columns [tests=./services/store/vault] [drop=r.Class.Columns]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the columns
	//lodge:check vault/digest/input-party [tests=./services/store/vault] [drop=r.Class.InputParty]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the input party
	for _, n := range []uint32{r.Class.Rows, r.Class.Inner, r.Class.Columns, r.Class.InputParty} {
		number(uint64(n))
	}
	//lodge:check vault/digest/convolution [tests=./services/store/vault]
	//  [run=TestReservationDigest] the digest of a reservation does not bind the shape of
	//  convolutions
	if c := r.Class.Convolution; c != (Convolution{}) {
		text("convolution")
		for _, n := range []int{
			c.Channels, c.Height, c.Width, c.Outputs, c.KernelHeight, c.KernelWidth, c.StrideHeight, c.StrideWidth, c.PaddingHeight, c.PaddingWidth,
		} {
			number(uint64(n))
		}
	}
	//lodge:check vault/digest/sacrifice [tests=./services/store/vault] [run=TestReservationDigest]
	//  the digest of a reservation does not bind whether products were sacrificed
	if r.Class.NoSacrifice {
		text("no sacrifice")
	}
	//lodge:check vault/digest/epoch [tests=./services/store/vault] [run=TestReservationDigest] the
	//  digest of a reservation does not bind the epoch
	number(r.Epoch)
	//lodge:check vault/digest/lease [tests=./services/store/vault] [run=TestReservationDigest] the
	//  digest of a reservation does not bind the lease
	number(uint64(r.Lease.UnixNano()))
	number(uint64(len(r.Clients)))
	//lodge:check vault/digest/clients [tests=./services/store/vault] [run=TestReservationDigest]
	//  the digest of a reservation does not bind the clients
	for _, c := range r.Clients {
		text(c)
	}
	number(uint64(len(r.Ranges)))
	for i, x := range r.Ranges {
		//lodge:check vault/digest/batch [tests=./services/store/vault] [run=TestReservationDigest]
		//  the digest of a reservation does not bind the batches
		text(x.Batch)
		//lodge:check vault/digest/content [tests=./services/store/vault]
		//  [run=TestReservationDigest] the digest of a reservation does not bind the content of
		//  batches
		h.Write(batches[i][:])
		//lodge:check vault/digest/first [tests=./services/store/vault] [run=TestReservationDigest]
		//  the digest of a reservation does not bind the first tuple of a range
		number(x.First)
		//lodge:check vault/digest/count [tests=./services/store/vault] [run=TestReservationDigest]
		//  the digest of a reservation does not bind the number of tuples
		number(x.Count)
	}
	return [32]byte(h.Sum(nil))
}

// validate makes the checks that need no records.
func (r *Reservation) validate(now time.Time) error {
	switch {
	//lodge:check vault/reserve/id [tests=./services/store/vault] [run=TestReserv|TestOverlap|Fuzz]
	//  an identifier that records cannot hold is accepted
	case !validID(r.ID):
		return fmt.Errorf("%w: the id of a reservation is 1 to %d of a-z, 0-9 and '-'", vaulterr.ErrRange, maxID)
	//lodge:check vault/reserve/clients [tests=./services/store/vault]
	//  [run=TestReserv|TestOverlap|TestNamed|Fuzz] names of clients that records cannot hold are
	//  accepted
	case !seal.ValidName(r.Owner) || len(r.Clients) > seal.MaxClients || slices.ContainsFunc(r.Clients, func(c string) bool { return !seal.ValidName(c) }):
		return fmt.Errorf("%w: reservation %s has clients without a name, with too long ones, or too many", vaulterr.ErrRange, r.ID)
	//lodge:check vault/masks/reserved-class [tests=./services/store/vault]
	//  [run=TestMasksAreForNobody] a client reserves the class of masks
	case r.Class.Kind == KindMasks:
		return fmt.Errorf("%w: reservation %s", vaulterr.ErrMasks, r.ID)
	//lodge:check vault/reserve/ranges [tests=./services/store/vault]
	//  [run=TestReserv|TestOverlap|Fuzz] a reservation has no ranges, or too many
	case len(r.Ranges) == 0 || len(r.Ranges) > MaxRanges:
		return fmt.Errorf("%w: %d ranges; a reservation has 1 to %d", vaulterr.ErrRange, len(r.Ranges), MaxRanges)
	//lodge:check vault/reserve/lease [tests=./services/store/vault]
	//  [run=TestLease|TestReserv|TestOverlap|TestInvalid|TestModel] a reservation is made whose
	//  lease has expired
	case !r.Lease.After(now):
		return fmt.Errorf("%w: the lease ended at %s", vaulterr.ErrExpired, r.Lease.UTC().Format(time.RFC3339))
	//lodge:check vault/reserve/longest-lease [tests=./services/store/vault] [run=TestLongestLease]
	//  a lease never expires
	case r.Lease.After(now.Add(MaxLease + ClockSlack)):
		return fmt.Errorf("%w: the lease ends later than %s from now", vaulterr.ErrRange, MaxLease)
	}
	return nil
}

// validID reports whether an id has only bytes that record keys and other systems accept unchanged.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Reserve records a reservation durably. It refuses tuples that any other reservation holds or
// held. For a repeated call it returns the record.
func (v *Stock) Reserve(r Reservation) (Reservation, error) {
	invalid := r.validate(v.Clock()) // does not apply to a recorded reservation, whose lease may have ended since
	r.State, r.Client, r.Delivered, r.Withdrawn, r.Lease = Reserved, "", time.Time{}, time.Time{}, r.Lease.UTC()
	var out Reservation
	err := v.Advance(func(tx store.Tx) error {
		old, err := seal.Get[Reservation](v.Store, tx, ReservationPrefix+r.ID)
		switch {
		case err == nil:
			out = *old
			//lodge:check vault/reserve/again [tests=./services/store/vault] [return=nil]
			//  [run=TestReserveAgain] one identifier names two reservations
			return same(old, &r)
		case !errors.Is(err, vaulterr.ErrNotFound):
			return err
		}
		if out = r; invalid != nil {
			return invalid
		}
		if err := v.take(tx, &out); err != nil {
			return err
		}
		return v.PutReservation(tx, &out, out.Lease)
	})
	return out, err
}

// same returns an error if r differs from the recorded reservation with the same id. It need not
// compare the tuples themselves, because the digest of a batch never changes.
func same(old, r *Reservation) error {
	if old.State == Released && old.Lease.Equal(r.Lease) && old.Owner == r.Owner { // the rest is not recorded any more
		return nil
	}
	//lodge:check vault/reserve/again/class [tests=./services/store/vault] [drop=old.Class ==
	//  r.Class] [run=TestReserveAgain] a retry with another class counts as the same reservation
	//lodge:check vault/reserve/again/epoch [tests=./services/store/vault] [drop=old.Epoch ==
	//  r.Epoch] [run=TestReserveAgain] a retry with another epoch counts as the same reservation
	//lodge:check vault/reserve/again/mac-key [tests=./services/store/vault] [drop=old.MACKey ==
	//  r.MACKey] [run=TestReserveAgain] a retry with another MAC key counts as the same reservation
	//lodge:check vault/reserve/again/owner [tests=./services/store/vault] [drop=old.Owner ==
	//  r.Owner] [run=TestReserveAgain] a retry with another owner counts as the same reservation
	//lodge:check vault/reserve/again/ranges [tests=./services/store/vault]
	//  [drop=slices.Equal(old.Ranges, r.Ranges)] [run=TestReserveAgain] a retry with other tuples
	//  counts as the same reservation
	//lodge:check vault/reserve/again/lease [tests=./services/store/vault]
	//  [drop=old.Lease.Equal(r.Lease)] [run=TestReserveAgain] a retry with another lease counts as
	//  the same reservation
	if old.Class == r.Class && old.Epoch == r.Epoch && old.MACKey == r.MACKey && old.Owner == r.Owner && old.Lease.Equal(r.Lease) &&
		//lodge:check vault/reserve/again/clients [tests=./services/store/vault]
		//  [run=TestReserveAgain] a retry with other clients counts as the same reservation
		slices.Equal(old.Clients, r.Clients) && slices.Equal(old.Ranges, r.Ranges) {
		return nil
	}
	return fmt.Errorf("%w: reservation %s, of something else", vaulterr.ErrExists, r.ID)
}

// take marks the tuples of a reservation as taken, and fills in its digest.
func (v *Stock) take(tx store.Tx, r *Reservation) error {
	//lodge:check vault/reserve/quarantine [tests=./services/store/vault] [run=TestQuarantine] a
	//  store that may be an old copy makes reservations
	if err := v.Trusted(tx); err != nil {
		return err
	}
	k, err := v.keys.MACKeyIn(tx, r.MACKey)
	if err == nil {
		//lodge:check vault/reserve/mac-key [tests=./services/store/vault]
		//  [run=TestBurn|TestReserv|TestOverlap] [redundant=burning a MAC key revokes its batches
		//  in the same transaction, so nothing can be reserved] tuples under a burnt MAC key are
		//  reserved
		err = k.Live()
	}
	if err == nil {
		//lodge:check vault/roster/reserve [tests=./services/store/vault] [run=TestStanding] tuples
		//  of other parties are reserved
		err = v.keys.Gives(tx, k.Epoch)
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
		//lodge:check vault/reserve/taken [tests=./services/store/vault]
		//  [swap=b.Taken.Within(x.Span) + mine[b].Within(x.Span)=>mine[b].Within(x.Span)]
		//  [run=TestOverlap|TestReserve|TestReservation|TestModel] a tuple of one reservation is
		//  reserved again
		//lodge:check vault/reserve/taken-twice [tests=./services/store/vault]
		//  [swap=b.Taken.Within(x.Span) + mine[b].Within(x.Span)=>b.Taken.Within(x.Span)]
		//  [run=TestOverlap|TestReserve|TestReservation|TestModel] a reservation holds one tuple
		//  twice
		if b.Taken.Within(x.Span)+mine[b].Within(x.Span) > 0 {
			return fmt.Errorf("%w: of batch %s, from %d on", vaulterr.ErrTaken, x.Batch, x.First)
		}
		mine[b] = mine[b].With(x.Span)
		digests[i] = b.Digest
	}
	for b, s := range mine {
		//lodge:check vault/reserve/marked [tests=./services/store/vault]
		//  [swap=b.Taken.Or(s)=>b.Taken] [run=TestOverlap|TestReserve|TestReservation|TestModel]
		//  reserved tuples are not marked as taken
		b.Taken, b.changed = b.Taken.Or(s), true
	}
	r.Digest = r.ComputeDigest(digests)
	return held.flush()
}

// reservable returns an error if a reservation cannot have a span of the batch, apart from tuples
// that are taken.
func (b *Batch) reservable(r *Reservation, x Span) error {
	//lodge:check vault/masks/reserved [tests=./services/store/vault] [run=TestMasksAreForNobody] a
	//  client reserves masks
	if b.Masks() {
		return fmt.Errorf("%w: batch %s", vaulterr.ErrMasks, b.ID)
	}
	if err := b.available(x); err != nil {
		return err
	}
	//lodge:check vault/reserve/of-another-class [tests=./services/store/vault] [drop=b.Class() !=
	//  r.Class] [run=TestReservationOf] a reservation mixes classes
	//lodge:check vault/reserve/of-another-epoch [tests=./services/store/vault] [drop=b.Epoch !=
	//  r.Epoch] [run=TestReservationOf] a reservation mixes epochs
	//lodge:check vault/reserve/of-another-batch-mac-key [tests=./services/store/vault]
	//  [drop=b.MACKey != r.MACKey] [run=TestReservationOf] a reservation mixes MAC keys
	if b.Class() != r.Class || b.Epoch != r.Epoch || b.MACKey != r.MACKey {
		return fmt.Errorf("%w: batch %s is of another class, epoch or MAC key", vaulterr.ErrRange, b.ID)
	}
	return nil
}

// available returns an error unless the span is within the batch and the batch is available.
func (b *Batch) available(x Span) error {
	switch {
	//lodge:check vault/reserve/erased [tests=./services/store/vault] [run=TestReservationOf] tuples
	//  of an erased batch are reserved
	case b.State == BatchRevoked || b.State == BatchConsumed:
		return fmt.Errorf("%w: batch %s", vaulterr.ErrErased, b.ID)
	//lodge:check vault/reserve/locked [tests=./services/store/vault] [run=TestReservationOf] tuples
	//  are reserved before their batch is active at every party
	case b.State != BatchAvailable:
		return fmt.Errorf("%w: batch %s is %s", vaulterr.ErrState, b.ID, b.State)
	//lodge:check vault/reserve/range [tests=./services/store/vault] [run=TestOverlap|TestReserv] a
	//  reservation reaches beyond its batch
	case x.Count == 0 || x.First >= b.Count || x.Count > b.Count-x.First:
		return fmt.Errorf("%w: batch %s has %d tuples", vaulterr.ErrRange, b.ID, b.Count)
	}
	return nil
}

// PutReservation records a reservation, and when there is something to do about it next.
func (v *Stock) PutReservation(tx store.Tx, r *Reservation, due time.Time) error {
	if err := seal.Put(v.Store, tx, ReservationPrefix+r.ID, r); err != nil {
		return err
	}
	return tx.Put(fmt.Sprintf("%s%020d/%s", DuePrefix, due.UnixNano(), r.ID), []byte{1})
}

// reservationIn is the record of a reservation within a transaction.
func (v *Stock) reservationIn(tx store.Tx, id string) (*Reservation, error) {
	return seal.Named[Reservation](v.Store, tx, ReservationPrefix+id, "reservation", id)
}

// Reservation gives the record of one.
func (v *Stock) Reservation(id string) (Reservation, error) {
	return seal.Read(v.Store, func(tx store.Tx) (*Reservation, error) { return v.reservationIn(tx, id) })
}

// Reservations calls f with all after an id, in order, until it says no.
func (v *Stock) Reservations(after string, f func(*Reservation) bool) error {
	return seal.Each(v.Store, ReservationPrefix, after, f)
}
