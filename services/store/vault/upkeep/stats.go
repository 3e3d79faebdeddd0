package upkeep

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Stats are the counts of a vault.
type Stats struct {
	Store        string                         `json:"store"` // its id
	Created      time.Time                      `json:"created"`
	Generation   uint64                         `json:"generation"`
	Lineage      string                         `json:"lineage,omitempty"`
	Quarantine   string                         `json:"quarantine,omitempty"`
	Classes      []ClassStats                   `json:"classes"`
	Masks        []MaskStats                    `json:"masks,omitempty"`
	Epochs       []EpochStats                   `json:"epochs"`
	MACKeys      map[keys.MACState]int          `json:"mac_keys"`
	Batches      map[stock.BatchState]int       `json:"batches"`
	Reservations map[stock.ReservationState]int `json:"reservations"`
	Decryptions  int                            `json:"decryptions"` // in the ledger
	Approvals    int                            `json:"approvals"`   // of requests for decryption, which wait or have it
	Peers        int                            `json:"peers"`       // whose stores are known
	Records      int                            `json:"records"`
	Blobs        int                            `json:"blobs"`
	BlobBytes    int64                          `json:"blob_bytes"`
}

// ClassStats counts the tuples of a class.
type ClassStats struct {
	stock.Class
	Locked   uint64 `json:"locked"` // stored, not yet active everywhere
	Free     uint64 `json:"free"`
	Reserved uint64 `json:"reserved"` // or delivered, within their lease
	Consumed uint64 `json:"consumed"`
	Lost     uint64 `json:"lost"`    // erased without having been delivered here
	Dropped  uint64 `json:"dropped"` // never were active
	Bytes    uint64 `json:"bytes"`   // of shares that are stored
}

// MaskStats counts the masks of a quorum in a form.
type MaskStats struct {
	Epoch  uint64   `json:"epoch"`
	Quorum []uint32 `json:"quorum"`
	Form   string   `json:"form"`
	Locked uint64   `json:"locked"` // stored, not yet active everywhere
	Free   uint64   `json:"free"`
	Spent  uint64   `json:"spent"`
	Lost   uint64   `json:"lost"`  // erased without having been spent
	Bytes  uint64   `json:"bytes"` // of shares that are stored
}

// EpochStats are the main values of an epoch.
type EpochStats struct {
	ID        uint64          `json:"id"`
	State     keys.EpochState `json:"state"`
	Purpose   string          `json:"purpose"`
	Decrypted uint64          `json:"decrypted"`
	Limit     uint64          `json:"limit"`
	Answered  uint64          `json:"answered,omitempty"` // with masks, which bounds nothing
}

func (s *ClassStats) add(b *stock.Batch) {
	held := b.Taken.Count() - b.Gone.Count()
	switch {
	case b.State == stock.BatchLocked:
		s.Locked += b.Count
	case b.State == stock.BatchRevoked && b.Lost == 0 && len(b.Taken) == 0:
		s.Dropped += b.Count
	default:
		free := b.Free().Count()
		s.Free += free
		s.Reserved += held
		s.Lost += b.Lost
		s.Consumed += b.Count - free - held - b.Lost
	}
	if b.Stored() {
		s.Bytes += (b.Count - b.Wiped.Count()) * b.TupleBytes
	}
}

// Stats counts the contents of the vault.
func (v *Upkeep) Stats() (*Stats, error) {
	var c *contents
	var first error
	err := v.Backend.View(func(tx store.Tx) (err error) {
		c, err = v.read(tx, func(key string, err error) {
			if first == nil {
				first = fmt.Errorf("%w: %s", err, key)
			}
		}, "")
		return err
	})
	if err == nil {
		err = first
	}
	if err == nil && c.identity == nil {
		err = fmt.Errorf("%w: %s", vaulterr.ErrNotFound, seal.IdentityKey)
	}
	if err != nil {
		return nil, err
	}
	s := &Stats{
		Store: hex.EncodeToString(c.identity.ID), Created: c.identity.Created, Generation: c.identity.Generation,
		Lineage: c.identity.Lineage, Quarantine: c.identity.Quarantine, MACKeys: map[keys.MACState]int{},
		Batches: map[stock.BatchState]int{}, Reservations: map[stock.ReservationState]int{}, Decryptions: len(c.ledger), Peers: c.peers,
		Records: c.records,
	}
	classes := map[stock.Class]*ClassStats{}
	s.Masks = c.maskStats()
	for _, id := range c.order {
		b := c.batches[id]
		s.Batches[b.State]++
		if b.Masks() {
			continue
		}
		if classes[b.Class()] == nil {
			classes[b.Class()] = &ClassStats{Class: b.Class()}
		}
		classes[b.Class()].add(b)
	}
	for _, x := range classes {
		s.Classes = append(s.Classes, *x)
	}
	slices.SortFunc(s.Classes, func(a, b ClassStats) int {
		return cmp.Compare(fmt.Sprintf("%+v", a.Class), fmt.Sprintf("%+v", b.Class))
	})
	for _, e := range c.epochs {
		s.Epochs = append(s.Epochs, EpochStats{e.ID, e.State, e.Purpose, e.Decrypted, e.Limit, e.Answered})
	}
	for _, k := range c.keys {
		s.MACKeys[k.State]++
	}
	for _, a := range c.approvals {
		if a.Waits(v.Clock()) {
			s.Approvals++
		}
	}
	for _, r := range c.reservations {
		s.Reservations[r.State]++
	}
	return s, v.measure(s)
}

// maskStats counts masks, in the order of the names of their classes.
func (c *contents) maskStats() (out []MaskStats) {
	classes := map[string]*MaskStats{}
	for _, id := range c.order {
		b := c.batches[id]
		if !b.Masks() {
			continue
		}
		name := stock.MaskClass(b.Epoch, b.Quorum, b.Form)
		s := classes[name]
		if s == nil {
			s = &MaskStats{Epoch: b.Epoch, Quorum: b.Quorum, Form: b.Form}
			classes[name] = s
		}
		n := ClassStats{}
		n.add(b)
		s.Locked, s.Free, s.Spent = s.Locked+n.Locked, s.Free+n.Free, s.Spent+n.Consumed
		s.Lost, s.Bytes = s.Lost+n.Lost+n.Dropped, s.Bytes+n.Bytes
	}
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		out = append(out, *classes[name])
	}
	return out
}

// Kinds counts the records by kind, which is the first part of their keys, without opening them.
func (v *Upkeep) Kinds() (map[string]int, error) {
	counts := map[string]int{}
	err := v.Backend.View(func(tx store.Tx) error {
		clear(counts)
		return tx.Scan("", func(key string, _ []byte) error {
			kind, _, _ := strings.Cut(key, "/")
			counts[kind]++
			return nil
		})
	})
	return counts, err
}

// measure adds up the blobs.
func (v *Upkeep) measure(s *Stats) error {
	blobs, err := v.Backend.Blobs()
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	for _, name := range blobs {
		b, err := v.Backend.Open(name)
		if err != nil {
			continue // erased meanwhile
		}
		size, err := b.Size()
		b.Close()
		if err == nil {
			s.Blobs++
			s.BlobBytes += size
		}
	}
	return nil
}
