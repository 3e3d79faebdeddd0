package stock

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// KindMasks is the kind of batches of masks, which a quorum spends when it decrypts: one record of
// this party for each ciphertext. They lie under threshold epochs, without a MAC key, and no client
// ever gets any.
const KindMasks = "masks"

// The forms of masks.
const (
	MasksExact = "exact"
	MasksPaper = "paper"
)

// MaxSpend bounds the shares of masks that are read at once.
const MaxSpend = 64 << 20

// MaskPrefix begins the names of batches of masks that are not used up, by class and in the order
// of their age, so that finding some takes no look at all batches there ever were. There is nothing
// in them.
const MaskPrefix = "masks/"

func (b *Batch) Masks() bool { return b.Kind == KindMasks }

// CheckKind refuses a batch that is not as its kind has it.
func (b *Batch) CheckKind() error {
	switch {
	//lodge:check vault/masks/kind [tests=./services/store/vault] [run=TestMasksOfAQuorum] tuples
	//  have a quorum
	case !b.Masks() && (b.Form != "" || len(b.Quorum) > 0):
		return fmt.Errorf("%w: batch %s, of kind %s, is of no quorum", vaulterr.ErrRange, b.ID, b.Kind)
	//lodge:check vault/masks/form [tests=./services/store/vault] [run=TestMasksOfAQuorum] masks
	//  have an unknown form
	case b.Masks() && b.Form != MasksExact && b.Form != MasksPaper:
		return fmt.Errorf("%w: masks of the form %q", vaulterr.ErrRange, b.Form)
	//lodge:check vault/masks/mac-key [tests=./services/store/vault] [run=TestMasksOfAQuorum] masks
	//  have a MAC key
	case b.Masks() && b.MACKey != "":
		return fmt.Errorf("%w: masks have no MAC key", vaulterr.ErrRange)
	}
	return nil
}

// FitsUnder refuses a batch that cannot lie under an epoch: tuples are of keys for triples, and
// masks of threshold keys and a quorum of theirs.
func (b *Batch) FitsUnder(e *keys.Epoch) error {
	//lodge:check vault/threshold/batches [tests=./services/store/vault]
	//  [run=TestPurposesNeverCross] tuples are stored under threshold keys, or masks under others
	//lodge:check vault/threshold/batches-decryption [tests=./services/store/vault] [drop=e.Purpose
	//  == keys.PurposeDecryption] [run=TestPurposesNeverCross] tuples are stored under decryption
	//  keys
	if b.Masks() != (e.Purpose == keys.PurposeThreshold) || e.Purpose == keys.PurposeDecryption {
		return fmt.Errorf("%w: epoch %d is for %s, and batch %s of kind %s", vaulterr.ErrState, e.ID, e.Purpose, b.ID, b.Kind)
	}
	if !b.Masks() {
		return nil
	}
	return e.CheckQuorum(b.Quorum)
}

// MaskClass begins the names of the masks of a class.
func MaskClass(epoch uint64, quorum []uint32, form string) string {
	return fmt.Sprintf("%s%020d/%s/%s/", MaskPrefix, epoch, QuorumName(quorum), form)
}

func (b *Batch) MaskKey() string {
	return fmt.Sprintf("%s%020d/%s", MaskClass(b.Epoch, b.Quorum, b.Form), b.Created.UnixNano(), b.ID)
}

// QuorumName stands for a quorum in keys of records, which may be of many members.
func QuorumName(quorum []uint32) string {
	var b []byte
	for _, q := range quorum {
		b = binary.LittleEndian.AppendUint32(b, q)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func (v *Stock) putMasks(tx store.Tx, e *keys.Epoch, b *Batch) error {
	if err := v.keys.CheckMine(e, b.Quorum); err != nil {
		return err
	}
	if err := tx.Put(b.MaskKey(), nil); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return seal.Put(v.Store, tx, BatchPrefix+b.ID, b)
}

// dropMasks forgets the name of masks that are used up or revoked.
func dropMasks(tx store.Tx, b *Batch) error {
	if !b.Masks() {
		return nil
	}
	if err := tx.Delete(b.MaskKey()); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// FreeMasks gives the available batches of masks of a quorum, in one form, that are not used up,
// the oldest first. Free of each batch are the masks that may be spent.
func (v *Stock) FreeMasks(epoch uint64, quorum []uint32, form string) ([]Batch, error) {
	return v.masksOf(MaskClass(epoch, quorum, form), func(b *Batch) bool {
		return b.Epoch == epoch && slices.Equal(b.Quorum, quorum) && b.Form == form
	})
}

// MasksUnder gives the available batches of masks under an epoch, of all quorums and forms, that
// are not used up.
func (v *Stock) MasksUnder(epoch uint64) ([]Batch, error) {
	return v.masksOf(fmt.Sprintf("%s%020d/", MaskPrefix, epoch), func(b *Batch) bool { return b.Epoch == epoch })
}

func (v *Stock) masksOf(prefix string, which func(*Batch) bool) ([]Batch, error) {
	var all []Batch
	err := v.Backend.View(func(tx store.Tx) error {
		all = nil
		return tx.Scan(prefix, func(key string, _ []byte) error {
			b, err := v.BatchIn(tx, key[strings.LastIndexByte(key, '/')+1:])
			if seal.OfRecord(err) { // which keeps nobody from the others
				return nil
			}
			if err == nil && len(b.Free()) > 0 && which(b) {
				all = append(all, *b)
			}
			return err
		})
	})
	return all, err
}

// SpendMasks returns the shares of a span of masks, only once: it durably records the masks as gone
// before it reads any. After an error, and after a crash, they are lost, unless the error is a
// refusal: ErrTaken if any of them is spent already, or those of a reservation. The caller wipes
// the result. The disk is rid of them with the sweeps that follow.
func (v *Stock) SpendMasks(batch string, span Span, also ...seal.Also) (shares []byte, err error) {
	//lodge:check vault/masks/overflow [tests=./services/store/vault] [run=TestSpendMasks$]
	//  [redundant=such a span is outside of the batch anyway] a span ends before it begins
	if span.End() < span.First {
		return nil, fmt.Errorf("%w: masks of batch %s", vaulterr.ErrRange, batch)
	}
	gone, end := false, v.Reading.Begin(batch, span)
	defer func() {
		if end(); gone {
			v.Owe(batch, v.Clock().Add(Settle))
		}
	}()
	var spent *Batch
	//lodge:check vault/masks/generation [tests=./services/store/vault] [swap=v.Advance=>v.Update]
	//  [run=TestMasksMakeAGeneration] an old copy of the store forgets spent masks unnoticed
	err = v.Advance(func(tx store.Tx) error {
		b, err := v.spendable(tx, batch, span)
		if err == nil {
			//lodge:check vault/approval/use-masks [tests=./services/store/vault]
			//  [run=TestApprovalInOneStep] masks are spent without an approval
			err = seal.DoAll(tx, also)
		}
		if err != nil {
			return err
		}
		//lodge:check vault/masks/durable [tests=./services/store/vault]
		//  [run=TestSpendMasks$|TestMasksCrash] spent masks are not recorded as spent
		b.Taken, b.Gone = b.Taken.With(span), b.Gone.With(span)
		spent = b
		return seal.Put(v.Store, tx, BatchPrefix+batch, b)
	})
	gone = err == nil || errors.Is(err, store.ErrUncertain)
	//lodge:check vault/masks/uncertain [tests=./services/store/vault] [swap=err != nil=>err != nil
	//  && !gone] [run=TestMasksCrash] masks are used although it is unknown whether they are spent
	if err != nil {
		return nil, err
	}
	return v.readSpent(spent, span)
}

// spendable gives the batch of a span of masks that may be spent.
func (v *Stock) spendable(tx store.Tx, batch string, x Span) (*Batch, error) {
	//lodge:check vault/masks/quarantine [tests=./services/store/vault] [run=TestSpendMasks$] a
	//  store that may be an old copy gives masks
	if err := v.Trusted(tx); err != nil {
		return nil, err
	}
	b, err := v.BatchIn(tx, batch)
	switch {
	case err != nil:
		return nil, err
	//lodge:check vault/masks/tuples [tests=./services/store/vault] [run=TestMasksAreForNobody] a
	//  session spends tuples that may be a client's
	case !b.Masks():
		return nil, fmt.Errorf("%w: batch %s, of kind %s", vaulterr.ErrMasks, batch, b.Kind)
	}
	//lodge:check vault/masks/available [tests=./services/store/vault] [swap=err !=
	//  nil=>errors.Is(err, vaulterr.ErrRange)] [run=TestSpendMasks$] masks are spent that not all
	//  parties have
	if err := b.available(x); err != nil {
		return nil, err
	}
	//lodge:check vault/masks/taken [tests=./services/store/vault]
	//  [run=TestSpendMasks$|TestMasksCrash] a mask is spent twice
	if b.Taken.Within(x) > 0 {
		return nil, fmt.Errorf("%w: masks of batch %s, from %d on, are spent", vaulterr.ErrTaken, batch, x.First)
	}
	e, err := v.keys.EpochIn(tx, b.Epoch)
	if err != nil {
		return nil, err
	}
	//lodge:check vault/masks/bounded [tests=./services/store/vault] [run=TestSpendingIsBounded]
	//  spent masks take any amount of memory
	if x.Count > MaxSpend/b.TupleBytes {
		return nil, fmt.Errorf("%w: %d masks of batch %s are too many at once", vaulterr.ErrRange, x.Count, batch)
	}
	//lodge:check vault/masks/roster [tests=./services/store/vault] [swap=v.keys.Works(e)=>nil]
	//  [run=TestStandingOfThreshold] masks are spent under a key that the present parties cannot
	//  use
	return b, v.keys.Works(e)
}

// readSpent reads masks that are durably gone, and that nothing erases meanwhile.
func (v *Stock) readSpent(b *Batch, span Span) ([]byte, error) {
	s, err := v.OpenShelf(b)
	if err != nil {
		return nil, fmt.Errorf("%w: masks of batch %s are lost", err, b.ID)
	}
	in := s.ReadSpan(span, func(x Span) error {
		//lodge:check vault/masks/wiped [tests=./services/store/vault] [run=TestMasksCrash]
		//  [redundant=masks are not erased while they are being read] erased masks are read as
		//  zeros
		if b.Wiped.Within(x) > 0 {
			return fmt.Errorf("%w: of batch %s, from %d on", vaulterr.ErrErased, b.ID, x.First)
		}
		return nil
	})
	defer in.Close()
	shares := make([]byte, span.Count*b.TupleBytes)
	if _, err := io.ReadFull(in, shares); err != nil {
		clear(shares)
		return nil, fmt.Errorf("%w: masks of batch %s, from %d on, are lost", err, b.ID, span.First)
	}
	return shares, nil
}
