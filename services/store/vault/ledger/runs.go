package ledger

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// The ledger of threshold decryption. A run decrypts messages of some ciphertexts under one epoch,
// with one quorum, for one client. It has a record of the common values, and its answers in chunks.
// For each ciphertext there is a pointer, which is not sealed: the runs and the places in them
// where its messages are answered; the entry there must name the ciphertext and the messages. So
// 20,000 ciphertexts cost a few microseconds each, and their messages next to nothing. Chunks are
// sealed under a key that is derived from that of the object with the epoch's secret: retiring an
// epoch erases it, and with it all answers, wherever a store has kept old records.
const (
	RunPrefix      = "run/"
	AnswersPrefix  = "answers/"
	AnsweredPrefix = "at/"

	DigestLen    = 32
	AnswersChunk = 16 << 10 // bytes of answers of an entry, and about that of a chunk

	MaxRun       = 1 << 20 // messages of a run
	MaxAnswer    = 1 << 20 // bytes
	maxRunAnswer = 64 << 20
)

// RunID names a run of threshold decryption, once, ever.
type RunID = [16]byte

// ThresholdRun is a run of threshold decryption that this party has taken part in, with its
// answers.
type ThresholdRun struct {
	Epoch       uint64
	Quorum      []uint32 // numbers of members
	Run         RunID
	Client      string
	Messages    []Messages // each once: what there is of a ciphertext is in order, and not apart
	AnswerBytes int        // of one message
	Answers     []byte     // in the order of the messages
}

// RunRecord holds the values that all messages of a run share.
type RunRecord struct {
	Epoch       uint64    `json:"epoch"`
	Quorum      []uint32  `json:"quorum"`
	Run         RunID     `json:"run"`
	Client      string    `json:"client"`
	When        time.Time `json:"when"`
	Count       int       `json:"count"`
	AnswerBytes int       `json:"answer_bytes"`
	Chunks      int       `json:"chunks"` // of answers
}

func RunsOf(prefix string, epoch uint64) string { return fmt.Sprintf("%s%020d/", prefix, epoch) }

func RunKey(epoch uint64, run RunID) string {
	return RunsOf(RunPrefix, epoch) + hex.EncodeToString(run[:])
}

func ChunkKey(epoch uint64, run RunID, chunk int) string {
	return fmt.Sprintf("%s%x/%08d", RunsOf(AnswersPrefix, epoch), run, chunk)
}

// AnswersCipher seals the answers under an epoch.
func (v *Ledger) AnswersCipher(e *keys.Epoch) (cipher.AEAD, error) {
	name := e.SecretObject()
	b, err := v.OpenBlob(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	key, err := v.UnwrapKey(name, b)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	derived, err := hkdf.Key(sha256.New, key, nil, "lodge threshold answers", seal.KeyLen)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	defer clear(derived)
	return chacha20poly1305.NewX(derived)
}

// count is how many messages the run has.
func (r *ThresholdRun) count() (n int) {
	for i := range r.Messages {
		n += r.Messages[i].Count
	}
	return n
}

// check refuses a run that is not as a ledger has it.
func (r *ThresholdRun) check() error {
	//lodge:check vault/runs/client [tests=./services/store/vault] [drop=r.Client == ""]
	//  [run=TestThresholdLedgerRefuses] an answer has no client
	//lodge:check vault/runs/client-length [tests=./services/store/vault] [drop=len(r.Client) >
	//  2*seal.MaxName] [run=TestThresholdLedgerRefuses] the name of a client has any length
	//lodge:check vault/runs/client-text [tests=./services/store/vault]
	//  [drop=!utf8.ValidString(r.Client)] [run=TestThresholdLedgerRefuses] two clients with invalid
	//  names are recorded as one
	//lodge:check vault/runs/id [tests=./services/store/vault] [drop=r.Run == (RunID{})]
	//  [run=TestThresholdLedgerRefuses] runs without an identifier are taken for one
	if r.Client == "" || len(r.Client) > 2*seal.MaxName || !utf8.ValidString(r.Client) || r.Run == (RunID{}) {
		return fmt.Errorf("%w: a run without an id or a proper client", vaulterr.ErrRange)
	}
	seen := make(map[[32]byte]struct{}, len(r.Messages))
	n := 0
	for i, m := range r.Messages {
		//lodge:check vault/runs/messages [tests=./services/store/vault] [drop=m.First < 0]
		//  [drop=m.Count < 1] [drop=m.First > MaxRun-m.Count] [run=TestThresholdLedgerRefuses] a
		//  run has messages with invalid numbers
		if m.First < 0 || m.Count < 1 || m.Count > MaxRun || m.First > MaxRun-m.Count {
			return fmt.Errorf("%w: %d messages of a ciphertext, from %d on", vaulterr.ErrRange, m.Count, m.First)
		}
		if n += m.Count; n > MaxRun {
			break
		}
		//lodge:check vault/runs/overlap [tests=./services/store/vault] [drop=r.Messages[i-1].End()
		//  <= m.First] [run=TestThresholdLedgerRefuses] overlapping messages have two answers in a
		//  run
		if i > 0 && r.Messages[i-1].Ciphertext == m.Ciphertext && r.Messages[i-1].End() <= m.First {
			continue
		}
		//lodge:check vault/runs/twice [tests=./services/store/vault]
		//  [run=TestThresholdLedgerRefuses] a message has two answers in a run
		if _, twice := seen[m.Ciphertext]; twice {
			return fmt.Errorf("%w: a message is twice in a run, or its ciphertext in two places", vaulterr.ErrRange)
		}
		seen[m.Ciphertext] = struct{}{}
	}
	switch {
	//lodge:check vault/runs/bounded [tests=./services/store/vault] [drop=n == 0] [drop=n > MaxRun]
	//  [drop=r.AnswerBytes > MaxAnswer] [run=TestThresholdLedgerRefuses] a run does not fit into a
	//  transaction
	case n == 0 || n > MaxRun || r.AnswerBytes < 1 || r.AnswerBytes > MaxAnswer || n*r.AnswerBytes > maxRunAnswer:
		return fmt.Errorf("%w: a run of %d messages with answers of %d bytes", vaulterr.ErrRange, n, r.AnswerBytes)
	//lodge:check vault/runs/length [tests=./services/store/vault] [run=TestThresholdLedgerRefuses]
	//  a message of a run has no answer
	case len(r.Answers) != n*r.AnswerBytes:
		return fmt.Errorf("%w: %d bytes of answers for %d messages, of %d each", vaulterr.ErrRange, len(r.Answers), n, r.AnswerBytes)
	}
	return nil
}

// sealedRun is a run as it is stored.
type sealedRun struct {
	ciphertexts [][32]byte
	pieces      [][]AnswerPiece // of each
	keys        []string        // of the chunks
	chunks      [][]byte
}

// sealed packs the run's answers into entries, and the entries into chunks.
func (r *ThresholdRun) sealed(aead cipher.AEAD) *sealedRun {
	s := &sealedRun{ciphertexts: make([][32]byte, 0, len(r.Messages)), pieces: make([][]AnswerPiece, 0, len(r.Messages))}
	all := make([]AnswerPiece, 0, len(r.Messages))                                               // one array for nearly all
	plain := make([]byte, 0, max(AnswersChunk, r.AnswerBytes)+DigestLen+2*binary.MaxVarintLen64) // which it does not outgrow
	defer func() { clear(plain[:cap(plain)]) }()
	flush := func() {
		key := ChunkKey(r.Epoch, r.Run, len(s.keys))
		//lodge:check vault/runs/epoch-key [tests=./services/store/vault] [swap=seal.Seal(aead, key,
		//  plain)=>slices.Clone(plain)] [run=TestAnswersAreUnderTheEpoch] answers of a retired epoch
		//  stay readable in kept records
		s.keys, s.chunks = append(s.keys, key), append(s.chunks, seal.Seal(aead, key, plain))
		clear(plain)
		plain = plain[:0]
	}
	answers := r.Answers
	for i := 0; i < len(r.Messages); {
		ciphertext, from := r.Messages[i].Ciphertext, len(all)
		for ; i < len(r.Messages) && r.Messages[i].Ciphertext == ciphertext; i++ {
			for m := r.Messages[i]; m.Count > 0; {
				e := m
				e.Count = min(m.Count, max(1, AnswersChunk/r.AnswerBytes))
				size := e.Count * r.AnswerBytes
				if len(plain) > 0 && len(plain)+size > AnswersChunk {
					flush()
				}
				all = append(all, AnswerPiece{e.First, e.Count, r.Run, len(s.keys), len(plain)})
				plain, answers = AppendEntry(plain, e, answers[:size]), answers[size:]
				m.First, m.Count = e.End(), m.Count-e.Count
			}
		}
		s.ciphertexts, s.pieces = append(s.ciphertexts, ciphertext), append(s.pieces, all[from:len(all):len(all)])
	}
	flush()
	return s
}

// RecordThreshold makes the answers of a run durable, all or none, before anything of them leaves.
// For messages that an earlier run has answered, the new answers replace the old ones. The caller
// knows that this is right: the other members have lost their answers, so the run decrypts again.
// It refuses with ErrDelivered if an earlier answer went to another client, and with ErrExists a
// run that is recorded already.
func (v *Ledger) RecordThreshold(r ThresholdRun, also ...seal.Also) error {
	if err := r.check(); err != nil {
		return err
	}
	e, err := v.keys.Epoch(r.Epoch)
	//lodge:check vault/runs/retired [tests=./services/store/vault] [run=TestRetireThreshold]
	//  [redundant=the secret of the epoch is erased, and the transaction checks again] a run is
	//  recorded under a retired epoch
	if err == nil && e.State == keys.EpochRetired {
		err = fmt.Errorf("%w: epoch %d is retired", vaulterr.ErrErased, r.Epoch)
	}
	if err != nil {
		return err
	}
	aead, err := v.AnswersCipher(&e)
	if err != nil {
		return err
	}
	s := r.sealed(aead)
	head := &RunRecord{
		Epoch: r.Epoch, Quorum: r.Quorum, Run: r.Run, Client: r.Client, When: v.Clock().UTC(), Count: r.count(),
		AnswerBytes: r.AnswerBytes, Chunks: len(s.chunks),
	}
	places := Pointers(r.Epoch, r.Quorum, s.ciphertexts)
	//lodge:check vault/runs/generation [tests=./services/store/vault] [swap=v.Advance=>v.Update]
	//  [run=TestRunsMakeAGeneration] an old copy of the store forgets answers unnoticed
	return v.Advance(func(tx store.Tx) error {
		//lodge:check vault/runs/purpose [tests=./services/store/vault]
		//  [swap=keys.PurposeThreshold=>e.Purpose] [run=TestThresholdLedgerRefuses] a run is
		//  recorded under an epoch that is not a threshold epoch
		e, err := v.answers(tx, r.Epoch, keys.PurposeThreshold)
		if err == nil {
			//lodge:check vault/runs/mine [tests=./services/store/vault]
			//  [run=TestThresholdLedgerRefuses] a run is recorded of a quorum without this party
			err = v.keys.CheckMine(e, r.Quorum)
		}
		var now [][]byte
		if err == nil {
			now, err = v.replace(tx, &r, s, places, e)
		}
		if err == nil {
			//lodge:check vault/approval/use-runs [tests=./services/store/vault] [run=TestApproval$]
			//  a run is answered without its approval
			err = seal.DoAll(tx, also)
		}
		if err == nil {
			err = seal.Put(v.Store, tx, keys.EpochKey(e.ID), e)
		}
		if err == nil {
			err = seal.Put(v.Store, tx, RunKey(r.Epoch, r.Run), head)
		}
		for i := 0; i < len(s.keys) && err == nil; i++ {
			err = tx.Put(s.keys[i], s.chunks[i])
		}
		for i := 0; i < len(places) && err == nil; i++ {
			err = tx.Put(places[i], now[i])
		}
		return err
	})
}

// replace returns the values of pointers after the run. It refuses a run that is recorded, or whose
// messages were answered to another client, and counts those that are answered for the first time.
func (v *Ledger) replace(tx store.Tx, r *ThresholdRun, s *sealedRun, places []string, e *keys.Epoch) ([][]byte, error) {
	_, err := seal.Get[RunRecord](v.Store, tx, RunKey(r.Epoch, r.Run))
	//lodge:check vault/runs/again [tests=./services/store/vault] [run=TestThresholdLedgerRefuses] a
	//  run is recorded twice
	if err == nil {
		return nil, fmt.Errorf("%w: run %x", vaulterr.ErrExists, r.Run)
	}
	if !errors.Is(err, vaulterr.ErrNotFound) {
		return nil, err
	}
	held, err := tx.GetAll(places)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	mine := map[RunID]bool{}
	now := make([][]byte, len(held))
	for i, b := range held {
		pieces := s.pieces[i]
		var old []AnswerPiece
		if b != nil {
			if old, err = DecodePointer(b); err != nil {
				return nil, err
			}
			if err := v.checkClient(tx, r, old, pieces, mine); err != nil {
				return nil, err
			}
		}
		if len(old) > 0 {
			var fresh int
			pieces, fresh = replaced(old, pieces)
			//lodge:check vault/runs/counted-again [tests=./services/store/vault]
			//  [run=TestMessagesOfCiphertexts] first answers to messages are not counted
			e.Answered += uint64(fresh)
		} else {
			for k := range pieces {
				//lodge:check vault/runs/counted [tests=./services/store/vault]
				//  [run=TestThresholdLedger$] the answers of a run are not counted
				e.Answered += uint64(pieces[k].Count)
			}
		}
		now[i] = EncodePointer(pieces)
	}
	return now, nil
}

// checkClient refuses pieces of a run that take the place of what another client has. mine are runs
// of which it is known.
func (v *Ledger) checkClient(tx store.Tx, r *ThresholdRun, old, pieces []AnswerPiece, mine map[RunID]bool) error {
	for i := range old {
		o := &old[i]
		overlaps := slices.ContainsFunc(pieces, func(p AnswerPiece) bool { return p.First < o.end() && o.First < p.end() })
		if !overlaps || mine[o.Run] {
			continue
		}
		earlier, err := seal.Get[RunRecord](v.Store, tx, RunKey(r.Epoch, o.Run))
		if err != nil {
			return fmt.Errorf("%w: run %x", err, o.Run)
		}
		//lodge:check vault/runs/delivered [tests=./services/store/vault]
		//  [run=TestThresholdLedgerRefuses] two clients get answers to one ciphertext when they ask
		//  at the same time
		if earlier.Client != r.Client {
			return fmt.Errorf("%w: a message of this run", vaulterr.ErrDelivered)
		}
		mine[o.Run] = true
	}
	return nil
}

// ThresholdCount is how many messages this party has answered under an epoch, with each quorum.
func (v *Ledger) ThresholdCount(epoch uint64) (uint64, error) {
	e, err := v.keys.Epoch(epoch)
	return e.Answered, err
}

// forgetRuns drops the answers of the runs under an epoch, and keeps that they were given.
func (v *Ledger) forgetRuns(tx store.Tx, epoch uint64) error {
	chunks, err := seal.KeysUnder(tx, RunsOf(AnswersPrefix, epoch))
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return seal.DeleteAll(tx, chunks)
}
