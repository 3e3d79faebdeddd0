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
	// ErrSpent says that records were spent, handed over or erased before. A mask under two ciphertexts gives away the
	// difference of their noises.
	ErrSpent = errors.New("masks: spent")
	// ErrCount says that there are not as many records.
	ErrCount = errors.New("masks: not as many records")
	// ErrEncoding says that bytes are no records.
	ErrEncoding = errors.New("masks: malformed records")
)

// Batch is this party's part of records with consecutive numbers. A record is at one place at a time: Take moves
// records to another batch, Export to a store, Spend to the decryption that uses them, and what has been moved is not
// there any more. A store must hand out a range of numbers once, durably, before it is used. A batch is safe for
// concurrent use.
type Batch struct {
	mu    sync.Mutex
	kind  Kind
	id    round.Digest
	first uint64
	data  []byte // records of RecordSize bytes
	spent bool
}

// Kind is what the records have in common.
func (b *Batch) Kind() Kind { return b.kind }

// ID names the run that made the records, the same at all parties.
func (b *Batch) ID() round.Digest { return b.id }

// First is the number of the first record in its run.
func (b *Batch) First() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first
}

// Count is how many records there are.
func (b *Batch) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.data) / b.kind.RecordSize()
}

// Format shows nothing of the records, whatever the verb.
func (b *Batch) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// Take moves the first n records to a batch of their own. The error wraps ErrSpent or ErrCount.
func (b *Batch) Take(n int) (*Batch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := b.kind.RecordSize()
	switch {
	case b.spent:
		return nil, ErrSpent
	case n < 1 || n*size > len(b.data):
		return nil, fmt.Errorf("%w: %d of %d", ErrCount, n, len(b.data)/size)
	}
	taken := &Batch{kind: b.kind, id: b.id, first: b.first, data: append([]byte(nil), b.data[:n*size]...)}
	clear(b.data[:n*size])
	//lodge:check masks/taken [swap=b.data[n*size:]=>b.data] records that were taken can be taken
	//  again
	b.data, b.first = b.data[n*size:], b.first+uint64(n)
	b.spent = len(b.data) == 0
	return taken, nil
}

// Export moves all records out, encoded: RecordSize bytes each, in the order of their numbers, so that records i to j
// are bytes i RecordSize to j RecordSize. The error is ErrSpent.
func (b *Batch) Export() ([]byte, error) {
	_, data, err := b.move()
	return data, err
}

// Import is a batch of exported records, of which it takes charge: those of a run from number first on. The error wraps
// ErrKind or ErrEncoding.
func Import(kind Kind, id round.Digest, first uint64, records []byte) (*Batch, error) {
	if err := kind.Check(); err != nil {
		return nil, err
	}
	size := kind.RecordSize()
	if len(records) == 0 || len(records)%size != 0 {
		return nil, fmt.Errorf("%w: %d bytes, records have %d", ErrEncoding, len(records), size)
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
		return nil, fmt.Errorf("%w: a share is no residue", ErrEncoding)
	}
	return b, nil
}

// Join moves the records of batches of one kind to one batch, in their order, which all parties have to join alike: its
// ID says which records they are. The error wraps ErrSpent, ErrKind or ErrCount; what was in the batches is gone then.
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
			err = fmt.Errorf("%w: %v and %v", ErrKind, joined.kind, b.kind)
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

// move takes all records out.
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

// Values are this party's shares of what the records hold, a column for each part. Planes of bits are packed 64
// records a word, zeros behind the last.
type Values struct {
	R        []uint64 // of r or rho modulo eta
	D        []uint64 // of d modulo p
	Parity   []uint64 // of d over GF(2)
	Bits     [][]uint64
	Products [][]uint64
	Triples  [][3][]uint64
}

// Spend moves the records' values out, for one use. The error is ErrSpent.
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

// newValues has room for n records.
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

// all lists the planes in the order of a record, and Parity, which is in records of odd kinds only.
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

// recorded are the planes of a record.
func (v *Values) recorded(k Kind) [][]uint64 { return v.all()[:k.bitPlanes()] }

// Wipe erases the values.
func (v *Values) Wipe() {
	clear(v.R)
	clear(v.D)
	for _, p := range v.all() {
		clear(p)
	}
}

// Format shows nothing, whatever the verb.
func (*Values) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// A record is a little-endian number: R in its lowest LogEta bits, then a bit of each plane, then D.

func decode(k Kind, data []byte) *Values {
	size := k.RecordSize()
	n := len(data) / size
	v := newValues(k, n)
	var planes [][]uint64
	if k.Form == Exact {
		planes = v.recorded(k)
	}
	var room [32]byte // a record and a word behind it
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

// encode is the inverse of decode, of the first n records.
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
