package evidence_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// signers returns the parties of a roster, and their keys.
func signers() (roster *config.Roster, keys []ed25519.PrivateKey) {
	roster = new(config.Roster)
	for i := range 3 {
		k := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
		keys = append(keys, k)
		roster.Parties = append(roster.Parties, config.Member{
			ID: i, Name: string(rune('a' + i)), SigningKey: base64.StdEncoding.EncodeToString(k.Public().(ed25519.PublicKey)),
		})
	}
	return roster, keys
}

// FuzzVerify reads signed statements followed by arbitrary data. They never prove anything, Verify
// blames the file, and reading byte by byte gives the same error.
func FuzzVerify(f *testing.F) {
	roster, keys := signers()
	hash := roster.Hash()
	st := &evidencev1.Statement{
		Kind: evidencev1.Kind_KIND_BAD_PROOF, Culprit: 1, When: timestamppb.Now(), Params: make([]byte, 32), Nonces: make([]byte, 96),
		Spec: &jobv1.SessionSpec{
			Ref: job.Ref{JobID: "job", Ordinal: 1}.Proto(), Protocol: jobv1.Protocol_PROTOCOL_TRIPLES, ProtocolVersion: job.ProtocolVersion,
			RosterHash: hash[:], Params: set, Field: field, Kind: jobv1.Kind_KIND_SCALAR, Count: 1, Epoch: 1,
		},
		History:  []*evidencev1.Agreement{{Name: "triple/mackey", Digests: make([]byte, 96)}},
		Messages: []*evidencev1.Message{{From: 1, Round: 2, Name: "mackey/response", Transcript: make([]byte, 32), Frames: make([]byte, 32), Shown: []uint32{0}}},
		KeyHash:  make([]byte, 32),
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(st)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, []byte{1, 0, 0, 0, 7})
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, statement, rest []byte) {
		for _, file := range [][]byte{append([]byte(magic), rest...), append(signedFile(statement, keys[0]), rest...)} {
			found, err := evidence.Verify(context.Background(), bytes.NewReader(file), roster)
			var known *evidence.Error
			if err == nil || !errors.As(err, &known) {
				t.Fatalf("%v, %v", found, err)
			}
			_, again := evidence.Verify(context.Background(), iotest.OneByteReader(bytes.NewReader(file)), roster)
			if again == nil || again.Error() != err.Error() {
				t.Fatalf("%v, and byte by byte %v", err, again)
			}
		}
	})
}
