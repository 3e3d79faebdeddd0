// Package audit implements a party's append-only log of reservations, deliveries, MAC keys, epochs
// and policies, with the clients that they concern. An entry names clients, objects, ranges and
// digests, and has no field that could hold a share, a key or a seed.
//
// A log is a directory of files audit-000001.jsonl, audit-000002.jsonl and so on. Each line is one
// entry in JSON with its sequence number, the hash of the entry before it (zero for the first), and
// its own hash: SHA-256 over the bytes of its line before `,"hash":`. An entry has exactly one
// encoding. The chain continues across files, so one known hash proves whether any earlier entry
// was changed, swapped or removed. The files alone do not show whether entries at the end were cut
// off, or the whole log was rewritten: for that, keep a hash elsewhere.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// version numbers the encoding.
const version = 1

// Limits of an entry.
const (
	maxName    = 64      // bytes of a party, client or tenant, and of an event
	maxObject  = 128     // bytes of an object's name
	maxObjects = 64      // objects of one entry
	maxRanges  = 1024    // ranges of one entry
	maxNote    = 1024    // bytes of a note
	maxLine    = 1 << 18 // bytes of a line
)

// Hash is a SHA-256, 64 lowercase hexadecimal digits in text.
type Hash [sha256.Size]byte

// ParseHash parses 64 lowercase hexadecimal digits.
func ParseHash(text string) (Hash, error) {
	var h Hash
	err := h.UnmarshalText([]byte(text))
	return h, err
}

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText parses the digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) == hex.EncodedLen(len(h)) && bytes.Equal(text, bytes.ToLower(text)) {
		if _, err := hex.Decode(h[:], text); err == nil {
			return nil
		}
	}
	return errors.New("audit: a hash is 64 lowercase hexadecimal digits")
}

// Event names what happened: lowercase words joined by '_'.
type Event string

// The events. Readers accept other events as well, so that they can verify the log of a later
// version.
const (
	Reserved    Event = "reserved"      // ranges were reserved for a client
	Delivered   Event = "delivered"     // a client received shares; the entry is durable before the first byte is sent
	Replayed    Event = "replayed"      // the same client received the same shares again
	Released    Event = "released"      // a reservation ended without delivery
	Expired     Event = "expired"       // the lease of a reservation ended
	Exported    Event = "exported"      // shares were written to files
	MACKeyDrawn Event = "mac_key_drawn" // a client received this party's share of a MAC key
	MACKeyBurnt Event = "mac_key_burnt" // a MAC key and the tuples under it became unusable
	// MACCheckFailed is a batch that was dropped because its MAC check failed or did not finish.
	// MACKeyRetired is a MAC key for which no new tuples are generated; its existing tuples stay
	// valid.
	MACCheckFailed Event = "mac_check_failed"
	MACKeyRetired  Event = "mac_key_retired"
	Decrypted      Event = "decrypted"     // a client received a decryption share
	Approved       Event = "approved"      // a client approved another client's decryption request
	Multiplied     Event = "multiplied"    // one client's input was multiplied with another client's encrypted input
	EpochDrained   Event = "epoch_drained" // no new tuples are generated in an epoch
	EpochRetired   Event = "epoch_retired" // an epoch's keys were erased
	// MultikeyMade and MultikeyRetired: a version of the party's own multi-key keys was generated
	// or erased.
	MultikeyMade    Event = "multikey_made"
	MultikeyRetired Event = "multikey_retired"
	Revoked         Event = "revoked"     // tuples were revoked and will not be delivered
	Quarantined     Event = "quarantined" // the party delivers nothing until its operator has acted
	PolicySet       Event = "policy_set"  // a stock policy was changed
	Refused         Event = "refused"     // a client's request was rejected
	Accused         Event = "accused"     // evidence convicts a party of the roster
	Pardoned        Event = "pardoned"    // an accusation no longer excludes a party
	Unnamed         Event = "unnamed"     // a session failed through a cheat that cannot be attributed to a party
	Stopped         Event = "stopped"     // too many unattributed failures: no session starts
	Cleared         Event = "cleared"     // the unattributed failures were cleared
	// EvaluatorExcluded: one of the party's evaluators returned a wrong result and receives no more
	// work.
	EvaluatorExcluded Event = "evaluator_excluded"
	TornRepaired      Event = "torn" // an unfinished line, cut off by a crash, was removed
)

// Auth is the way in which an actor authenticated.
type Auth string

// Values of Auth.
const (
	Certificate Auth = "certificate" // its TLS certificate
	Token       Auth = "token"       // a bearer token from the OIDC issuer
	Local       Auth = "local"       // a command on the party's own machine
)

// Range is a run of tuples of an object.
type Range struct {
	Object string `json:"object"`
	First  uint64 `json:"first"`
	Count  uint64 `json:"count"`
}

// Entry is one line. Append sets Version, Seq, Time, Party, Prev and Hash.
type Entry struct {
	Version int       `json:"v"`
	Seq     uint64    `json:"seq"` // from 1
	Time    time.Time `json:"time"`
	Party   string    `json:"party"`
	// Actor is the client, peer or coordinator that caused the event; empty for the party itself.
	Actor  string `json:"actor,omitempty"`
	Auth   Auth   `json:"auth,omitempty"`
	Event  Event  `json:"event"`
	Tenant string `json:"tenant,omitempty"`
	// Objects are the objects concerned, with their kind, such as "reservation/r-17", "batch/b-3",
	// "epoch/4".
	Objects []string `json:"objects,omitempty"`
	Ranges  []Range  `json:"ranges,omitempty"`
	Count   uint64   `json:"count,omitempty"` // tuples, or bytes of a torn line
	Digest  Hash     `json:"digest,omitzero"` // digest of the reserved or delivered data, if any; never of a key
	Note    string   `json:"note,omitempty"`  // for people
	Prev    Hash     `json:"prev"`
	Hash    Hash     `json:"hash,omitzero"`
}

// validate rejects entries beyond the limits.
func (e *Entry) validate() error {
	if !word(string(e.Event), maxName, "abcdefghijklmnopqrstuvwxyz_") {
		return fmt.Errorf("audit: event %.80q is not lowercase words with '_'", e.Event)
	}
	if !name(e.Party, maxName) {
		return fmt.Errorf("audit: party %.80q is not a name", e.Party)
	}
	for what, n := range map[string]string{"actor": e.Actor, "auth": string(e.Auth), "tenant": e.Tenant} {
		if n != "" && !name(n, maxName) {
			return fmt.Errorf("audit: %s %.80q is not a name", what, n)
		}
	}
	if len(e.Objects) > maxObjects || len(e.Ranges) > maxRanges {
		return fmt.Errorf("audit: %d objects and %d ranges; an entry holds %d and %d", len(e.Objects), len(e.Ranges), maxObjects, maxRanges)
	}
	for _, o := range e.Objects {
		if !name(o, maxObject) {
			return fmt.Errorf("audit: object %.160q is not a name", o)
		}
	}
	for _, r := range e.Ranges {
		if !name(r.Object, maxObject) || r.Count == 0 || r.First+r.Count < r.First {
			return fmt.Errorf("audit: range of %d tuples from %d of %.160q", r.Count, r.First, r.Object)
		}
	}
	if len(e.Note) > maxNote || !utf8.ValidString(e.Note) || strings.ContainsFunc(e.Note, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("audit: a note is at most %d bytes of printable text", maxNote)
	}
	return nil
}

// name reports whether s consists of 1 to most characters that names and ids may have.
func name(s string, most int) bool {
	return word(s, most, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+-")
}

func word(s string, most int, of string) bool {
	return s != "" && len(s) <= most && strings.Trim(s, of) == "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(of, r) })
}

// The end of every line: prev, hash and the JSON around them.
const (
	prevKey = `,"prev":"`
	hashKey = `","hash":"`
	lineEnd = `"}`
	digits  = 2 * sha256.Size
	suffix  = len(prevKey) + digits + len(hashKey) + digits + len(lineEnd)
)

// seal sets e.Hash and returns e's line without its end.
func seal(e *Entry) ([]byte, error) {
	e.Hash = Hash{}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	line = line[:len(line)-1] // the brace
	e.Hash = sha256.Sum256(line)
	line = append(line, hashKey[1:]...)
	line = hex.AppendEncode(line, e.Hash[:])
	line = append(line, lineEnd...)
	if len(line) > maxLine {
		return nil, fmt.Errorf("audit: an entry of %d bytes; at most %d", len(line), maxLine)
	}
	return line, nil
}

// decode parses a line without its end. It accepts exactly the lines that seal returns.
func decode(line []byte) (Entry, error) {
	var e Entry
	if len(line) > maxLine {
		return e, errors.New("is too long")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, errors.New("is not an entry")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("has data after its entry")
	}
	switch {
	case e.Version != version:
		return e, fmt.Errorf("has version %d; this build reads %d", e.Version, version)
	case e.Seq == 0:
		return e, errors.New("has no sequence number")
	case e.Time.Location() != time.UTC:
		return e, errors.New("has a time that is not UTC")
	}
	if err := e.validate(); err != nil {
		return e, errors.New("is not an entry: " + strings.TrimPrefix(err.Error(), "audit: "))
	}
	claimed := e.Hash
	again, err := seal(&e)
	switch {
	case err != nil:
		return e, errors.New("is not an entry")
	case e.Hash != claimed:
		return e, errors.New("was changed: its hash is not that of its content")
	case !bytes.Equal(again, line):
		return e, errors.New("is not the canonical encoding of its entry")
	}
	return e, nil
}

// Printable returns text as one line that fits a note.
func Printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxNote {
		s = strings.ToValidUTF8(s[:maxNote], "")
	}
	return s
}
