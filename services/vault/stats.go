package vault

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
)

// Stats is what is in a vault.
type Stats struct {
	Store        string                   `json:"store"` // its id
	Created      time.Time                `json:"created"`
	Generation   uint64                   `json:"generation"`
	Lineage      string                   `json:"lineage,omitempty"`
	Quarantine   string                   `json:"quarantine,omitempty"`
	Classes      []ClassStats             `json:"classes"`
	Epochs       []EpochStats             `json:"epochs"`
	MACKeys      map[MACState]int         `json:"mac_keys"`
	Batches      map[BatchState]int       `json:"batches"`
	Reservations map[ReservationState]int `json:"reservations"`
	Decryptions  int                      `json:"decryptions"` // in the ledger
	Peers        int                      `json:"peers"`       // whose stores are known
	Records      int                      `json:"records"`
	Blobs        int                      `json:"blobs"`
	BlobBytes    int64                    `json:"blob_bytes"`
}

// ClassStats counts the tuples of a class.
type ClassStats struct {
	Class
	Locked   uint64 `json:"locked"` // stored, not yet active everywhere
	Free     uint64 `json:"free"`
	Reserved uint64 `json:"reserved"` // or delivered, within their lease
	Consumed uint64 `json:"consumed"`
	Lost     uint64 `json:"lost"`    // erased without having been delivered here
	Dropped  uint64 `json:"dropped"` // never were active
	Bytes    uint64 `json:"bytes"`   // of shares that are stored
}

// EpochStats is the part of an epoch that is no detail.
type EpochStats struct {
	ID        uint64     `json:"id"`
	State     EpochState `json:"state"`
	Purpose   string     `json:"purpose"`
	Decrypted uint64     `json:"decrypted"`
	Limit     uint64     `json:"limit"`
}

// stored: its shares are there, apart from those that are erased.
func (b *Batch) stored() bool { return b.State == BatchLocked || b.State == BatchAvailable }

func (s *ClassStats) add(b *Batch) {
	held := b.Taken.Count() - b.Gone.Count()
	switch {
	case b.State == BatchLocked:
		s.Locked += b.Count
	case b.State == BatchRevoked && b.Lost == 0 && len(b.Taken) == 0:
		s.Dropped += b.Count
	default:
		free := b.Free().Count()
		s.Free += free
		s.Reserved += held
		s.Lost += b.Lost
		s.Consumed += b.Count - free - held - b.Lost
	}
	if b.stored() {
		s.Bytes += (b.Count - b.Wiped.Count()) * b.TupleBytes
	}
}

// Stats counts what is in the vault.
func (v *Vault) Stats() (*Stats, error) {
	var c *contents
	var first error
	err := v.store.View(func(tx store.Tx) (err error) {
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
		err = fmt.Errorf("%w: %s", ErrNotFound, identityKey)
	}
	if err != nil {
		return nil, err
	}
	s := &Stats{
		Store: hex.EncodeToString(c.identity.ID), Created: c.identity.Created, Generation: c.identity.Generation,
		Lineage: c.identity.Lineage, Quarantine: c.identity.Quarantine, MACKeys: map[MACState]int{},
		Batches: map[BatchState]int{}, Reservations: map[ReservationState]int{}, Decryptions: len(c.ledger), Peers: c.peers,
		Records: c.records,
	}
	classes := map[Class]*ClassStats{}
	for _, id := range c.order {
		b := c.batches[id]
		s.Batches[b.State]++
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
		s.Epochs = append(s.Epochs, EpochStats{e.ID, e.State, e.Purpose, e.Decrypted, e.Limit})
	}
	for _, k := range c.keys {
		s.MACKeys[k.State]++
	}
	for _, r := range c.reservations {
		s.Reservations[r.State]++
	}
	return s, v.measure(s)
}

// measure adds up the blobs.
func (v *Vault) measure(s *Stats) error {
	blobs, err := v.store.Blobs()
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	for _, name := range blobs {
		b, err := v.store.Open(name)
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
