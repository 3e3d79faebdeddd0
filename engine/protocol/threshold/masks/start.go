package masks

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/ot"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Config holds the values that all parties of a run agree on, and the party's own values. The
// parties of the session are the quorum.
type Config struct {
	Session   round.Session
	Step      string
	Kind      Kind
	Count     int // number of records that the run returns
	Sacrifice int // number of additional records that are made, opened and checked
	Source    *sample.Source
	Workers   int
}

// maxTransfers bounds the memory of a run for each peer: 16 bytes for each transfer, and the same
// again for messages.
const maxTransfers = 1 << 23

// The checks.
const (
	// CheckConsistency fails if a party made transfers with inconsistent choices.
	CheckConsistency = "consistency"
	// CheckMask fails if an opened record is wrong. The cheating party cannot be identified.
	CheckMask = "mask"
)

// MaxCount returns the maximum number of records of a kind in one run, including opened records.
func MaxCount(k Kind) int { return maxTransfers / k.transfers() / 64 * 64 }

// records returns the number of records to make: a multiple of 64, of which the last are not used.
func (c *Config) records() int { return (c.Count + c.Sacrifice + 63) / 64 * 64 }

// transfers returns the number of oblivious transfers of a pair.
func (c *Config) transfers() int { return c.Kind.transfers() * c.records() }

func (c *Config) name(message string) string { return c.Step + "/" + message }

// extensionSize returns the size of a pair's extension in bytes.
func (c *Config) extensionSize() int64 {
	var size int64
	for i := range ot.Chunks(c.transfers()) {
		size += int64(ot.FrameSize(ot.Chunk(c.transfers(), i)))
	}
	return size
}

// correctionSize returns the size in bytes of the corrections from one party to another.
func (c *Config) correctionSize() int {
	size := 2 * len(c.Kind.factors()) * c.records() / 8
	for p := range c.Kind.widths() {
		size += kernel.PackedSize(c.records(), c.Kind.correctionWidth(p))
	}
	return size
}

// pair returns the ID of the transfers between parties i < j, of which j is the receiver.
func (c *Config) pair(i, j round.Party) ot.ID {
	return ot.ID(round.Hash("lodge masks transfers", c.Session.ID[:], []byte(c.Step),
		round.Uint(uint64(i)), round.Uint(uint64(j))))
}

// batchID returns the ID of the run's records.
func (c *Config) batchID() round.Digest {
	k := c.Kind
	return round.Hash("lodge masks", c.Session.ID[:], []byte(c.Step), round.Uint(uint64(k.Form)),
		round.Uint(uint64(k.LogEta)), round.Uint(uint64(k.LogPhi)), round.Uint(k.Odd), round.Uint(uint64(c.Session.Parties)))
}

// run is the state of one party. Indices of peers are those of the session.
type run struct {
	Config
	moduli    []modulus // of the shares of bits
	factors   [][2]int
	bits      [][]uint64 // this party's own bits, by plane
	shares    [][]uint64 // of the bits of moduli, a word for each record
	products  [][]uint64 // shares of the products, by plane
	senders   []*ot.Sender
	receivers []*ot.Receiver
}

// Wipe erases everything except the records that were returned.
func (r *run) Wipe() {
	for _, list := range [][][]uint64{r.bits, r.shares, r.products} {
		for _, v := range list {
			clear(v)
		}
	}
	for _, s := range r.senders {
		if s != nil {
			s.Wipe()
		}
	}
	for _, s := range r.receivers {
		if s != nil {
			s.Wipe()
		}
	}
}

// Start begins a run. The source must not be used for anything else.
func Start(c Config) (round.Transition[*Batch], error) {
	if c.Source == nil || c.Count < 1 || c.Sacrifice < 0 {
		return round.Transition[*Batch]{}, errors.New("masks: configuration without source or count")
	}
	if err := c.Kind.Check(); err != nil {
		return round.Transition[*Batch]{}, err
	}
	if most := MaxCount(c.Kind); c.Count > most || c.Sacrifice > most || c.records() > most {
		err := fmt.Errorf("%w: %d records and %d to open, at most %d", ErrCount, c.Count, c.Sacrifice, most)
		return round.Transition[*Batch]{}, err
	}
	moduli, err := c.Kind.moduli()
	if err != nil {
		return round.Transition[*Batch]{}, err
	}
	r := &run{
		Config: c, moduli: moduli, factors: c.Kind.factors(),
		senders: make([]*ot.Sender, c.Session.Parties), receivers: make([]*ot.Receiver, c.Session.Parties),
	}
	c.Session.Secrets.Own(r, c.Source)
	for p := range c.Kind.planes() {
		s := c.Source.Stream("bits", uint64(p))
		plane := make([]uint64, c.records()/64)
		for i := range plane {
			plane[i] = s.Uint64()
		}
		s.Wipe()
		r.bits = append(r.bits, plane)
	}
	var send []round.Message
	for p := range c.Session.Self {
		source := c.Source.Sub("receiver", uint64(p))
		var offer []byte
		r.receivers[p], offer = ot.NewReceiver(c.pair(p, c.Session.Self), source)
		source.Wipe()
		send = append(send, round.Message{To: p, Name: c.name("offer"), Body: round.Bytes(offer)})
	}
	return round.Next(round.Round[*Batch](offers{r}), send...), nil
}

// lower wants w from the parties before this one.
func (c *Config) lower(w round.Want) []round.Want {
	return c.Session.Each(w)[:c.Session.Self]
}

// higher wants w from the parties after this one.
func (c *Config) higher(w round.Want) []round.Want {
	return c.Session.Each(w)[c.Session.Self:]
}
