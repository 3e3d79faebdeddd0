package masks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/secret"
)

var (
	// ErrSpent is returned if records were already spent, moved or erased. A mask under two
	// ciphertexts reveals the difference of their noises.
	ErrSpent = errors.New("masks: spent")
	// ErrCount is returned if there are too few records for the request, or too many.
	ErrCount = errors.New("masks: wrong number of records")
	// ErrEncoding is returned if bytes do not encode records.
	ErrEncoding = errors.New("masks: malformed records")
)

// Batch is this party's part of records with consecutive numbers. A record is in one place at a
// time: Take moves records to another batch, Export to a store, and Spend to the decryption that
// uses them. The original batch no longer has them. A store must hand out a range of numbers only
// once, and must record this durably before the range is used. A batch is safe for concurrent use.
type Batch struct {
	mu    sync.Mutex
	kind  Kind
	id    round.Digest
	first uint64
	data  []byte // records of RecordSize bytes
	spent bool
}

// Kind returns the kind of the records.
func (b *Batch) Kind() Kind { return b.kind }

// ID returns the ID of the run that made the records, the same at all parties.
func (b *Batch) ID() round.Digest { return b.id }

// First returns the number of the first record in its run.
func (b *Batch) First() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first
}

// Count returns the number of records.
func (b *Batch) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.data) / b.kind.RecordSize()
}

// Format prints a placeholder, whatever the verb, so that a log cannot reveal the records.
func (b *Batch) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// Take moves the first n records to a new batch. The error wraps ErrSpent or ErrCount.
func (b *Batch) Take(n int) (*Batch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := b.kind.RecordSize()
	switch {
	case b.spent:
		return nil, ErrSpent
	case n < 1 || n*size > len(b.data):
		return nil, fmt.Errorf("%w: requested %d of %d records", ErrCount, n, len(b.data)/size)
	}
	taken := &Batch{kind: b.kind, id: b.id, first: b.first, data: append([]byte(nil), b.data[:n*size]...)}
	clear(b.data[:n*size])
	//lodge:check masks/taken [swap=b.data[n*size:]=>b.data] records that were taken can be taken
	//  again
	b.data, b.first = b.data[n*size:], b.first+uint64(n)
	b.spent = len(b.data) == 0
	return taken, nil
}

// Export moves all records out of the batch, encoded with RecordSize bytes each, in the order of
// their numbers: records i to j are bytes i RecordSize to j RecordSize. The error is ErrSpent.
func (b *Batch) Export() ([]byte, error) {
	_, data, err := b.move()
	return data, err
}

// Import returns a batch of exported records, which are those of a run from number first on. It
// takes ownership of the slice. The error wraps ErrKind or ErrEncoding.
func Import(kind Kind, id round.Digest, first uint64, records []byte) (*Batch, error) {
	if err := kind.Check(); err != nil {
		return nil, err
	}
	size := kind.RecordSize()
	if len(records) == 0 || len(records)%size != 0 {
		return nil, fmt.Errorf("%w: %d bytes, want a multiple of the record size %d", ErrEncoding, len(records), size)
	}
	if unused := 8*size - kind.recordBits(); unused > 0 {
		var high byte
		for at := size - 1; at < len(records); at += size {
			high |= records[at]
		}
		//lodge:check masks/padding a record has several encodings
		if high>>(8-unused) != 0 {
			return nil, fmt.Errorf("%w: padding", ErrEncoding)
		}
	}
	b := &Batch{kind: kind, id: id, first: first, data: records}
	//lodge:check masks/record-residues a record of an odd kind has several encodings
	if kind.Odd != 0 && !b.residues() {
		return nil, fmt.Errorf("%w: a share is not a residue", ErrEncoding)
	}
	return b, nil
}

// Join moves the records of batches of one kind to one batch, in the given order. All parties must
// join them in the same order: the ID of the result depends on it. The error wraps ErrSpent,
// ErrKind or ErrCount; then the records of the batches are lost.
func Join(batches ...*Batch) (*Batch, error) {
	if len(batches) == 0 {
		return nil, fmt.Errorf("%w: no batches", ErrCount)
	}
	if len(batches) == 1 {
		return batches[0], nil
	}
	var parts [][]byte
	joined := &Batch{kind: batches[0].kind}
	for _, b := range batches {
		first, data, err := b.move()
		//lodge:check masks/joined-kinds records of different kinds are joined
		if err == nil && b.kind != joined.kind {
			clear(data)
			err = fmt.Errorf("%w: cannot join %v and %v", ErrKind, joined.kind, b.kind)
		}
		if err != nil {
			joined.Wipe()
			for _, rest := range batches {
				rest.Wipe()
			}
			return nil, err
		}
		old := joined.data
		joined.data = slices.Concat(old, data)
		clear(old)
		parts = append(parts, b.id[:], round.Uint(first), round.Uint(uint64(len(data)/b.kind.RecordSize())))
		clear(data)
	}
	joined.id = round.Hash("lodge joined masks", parts...)
	return joined, nil
}

// move moves all records out of the batch.
func (b *Batch) move() (first uint64, data []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent {
		return 0, nil, ErrSpent
	}
	//lodge:check masks/exported [as=data = b.data] records that were exported can be used again
	data, b.data, b.spent = b.data, nil, true
	return b.first, data, nil
}

// residues reports whether all shares of records of an odd kind are below their moduli.
func (b *Batch) residues() bool {
	v := decode(b.kind, b.data)
	defer v.Wipe()
	var above uint64
	for i := range v.R {
		_, eta := bits.Sub64(v.R[i], b.kind.Eta(), 0)
		_, p := bits.Sub64(v.D[i], b.kind.P(), 0)
		above |= 1 - eta&p
	}
	return above == 0
}

// Wipe erases the records.
func (b *Batch) Wipe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.data)
	b.data, b.spent = nil, true
}

// Values holds this party's shares from records, a column for each part. Planes of bits are packed
// 64 records to a word, with zeros after the last record.
type Values struct {
	R        []uint64 // of r or rho modulo eta
	D        []uint64 // of d modulo p
	Parity   []uint64 // of d over GF(2)
	Bits     [][]uint64
	Products [][]uint64
	Triples  [][3][]uint64
}

// Spend moves the records' values out of the batch, for one use. The error is ErrSpent.
func (b *Batch) Spend() (*Values, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent {
		return nil, ErrSpent
	}
	v := decode(b.kind, b.data)
	clear(b.data)
	//lodge:check masks/spent one mask covers two noise values
	b.data, b.spent = nil, true
	return v, nil
}

// newValues returns zero values for n records.
func newValues(k Kind, n int) *Values {
	v := &Values{R: make([]uint64, n)}
	if k.Form != Exact {
		return v
	}
	plane := func() []uint64 { return make([]uint64, (n+63)/64) }
	v.D = make([]uint64, n)
	for range k.LogPhi {
		v.Bits = append(v.Bits, plane())
	}
	for range k.Products() {
		v.Products = append(v.Products, plane())
	}
	for range k.Triples() {
		v.Triples = append(v.Triples, [3][]uint64{plane(), plane(), plane()})
	}
	v.Parity = plane()
	return v
}

// all returns the planes in the order of a record, followed by Parity, which only records of odd
// kinds contain.
func (v *Values) all() [][]uint64 {
	list := append(append([][]uint64(nil), v.Bits...), v.Products...)
	for _, t := range v.Triples {
		list = append(list, t[:]...)
	}
	if v.Parity != nil {
		list = append(list, v.Parity)
	}
	return list
}

// recorded returns the planes that a record contains.
func (v *Values) recorded(k Kind) [][]uint64 { return v.all()[:k.bitPlanes()] }

// Wipe erases the values.
func (v *Values) Wipe() {
	clear(v.R)
	clear(v.D)
	for _, p := range v.all() {
		clear(p)
	}
}

// Format prints a placeholder, whatever the verb, so that a log cannot reveal the values.
func (*Values) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// A record is encoded as a little-endian number: R in its lowest LogEta bits, then a bit of each
// plane, then D.

func decode(k Kind, data []byte) *Values {
	size := k.RecordSize()
	n := len(data) / size
	v := newValues(k, n)
	var planes [][]uint64
	if k.Form == Exact {
		planes = v.recorded(k)
	}
	var room [32]byte // a record and one more word
	eta := uint64(1)<<k.LogEta - 1
	for i := range n {
		copy(room[:], data[i*size:(i+1)*size])
		v.R[i] = binary.LittleEndian.Uint64(room[:]) & eta
		if k.Form == Paper {
			continue
		}
		for p, plane := range planes {
			at := k.LogEta + p
			plane[i/64] |= uint64(room[at/8]>>(at%8)&1) << (i % 64)
		}
		at := k.LogEta + len(planes)
		d := binary.LittleEndian.Uint64(room[at/8:])>>(at%8) | uint64(room[at/8+8])<<(64-at%8)
		v.D[i] = d & (1<<k.LogP() - 1)
		if k.Odd == 0 {
			v.Parity[i/64] |= d & 1 << (i % 64)
		}
	}
	clear(room[:])
	return v
}

// encode encodes the first n records. It is the inverse of decode.
func encode(k Kind, v *Values, n int) []byte {
	size := k.RecordSize()
	data := make([]byte, n*size)
	var planes [][]uint64
	if k.Form == Exact {
		planes = v.recorded(k)
	}
	var room [32]byte
	for i := range n {
		clear(room[:])
		binary.LittleEndian.PutUint64(room[:], v.R[i])
		if k.Form == Exact {
			for p, plane := range planes {
				at := k.LogEta + p
				room[at/8] |= byte(plane[i/64]>>(i%64)&1) << (at % 8)
			}
			at := k.LogEta + len(planes)
			binary.LittleEndian.PutUint64(room[at/8:], binary.LittleEndian.Uint64(room[at/8:])|v.D[i]<<(at%8))
			room[at/8+8] |= byte(v.D[i] >> (64 - at%8))
		}
		copy(data[i*size:], room[:size])
	}
	clear(room[:])
	return data
}
