package evidence_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/session/accusations/accusationstest"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// A file has exactly one encoding under one roster and one protocol version. Otherwise one cheat
// could yield many different files, or a session could be judged by other rules than its own.
func TestOneEncoding(t *testing.T) {
	roster, keys := signers()
	file, err := accusationstest.Equivocation(roster, &jobv1.SessionRef{JobId: "j", Ordinal: 1}, accusationstest.Party{Index: 1, Signer: keys[1]}, accusationstest.Party{Signer: keys[0]})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(r *config.Roster, file []byte) error {
		_, err := evidence.Verify(context.Background(), bytes.NewReader(file), r)
		return err
	}
	if err := judge(roster, file); err != nil {
		t.Fatal(err)
	}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	long := append(bytes.Clone(file), unknown...)
	binary.LittleEndian.PutUint32(long[len(magic):], uint32(len(file)-len(magic)-4+len(unknown)))
	p := parse(t, file)
	statement, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.st)
	if err != nil {
		t.Fatal(err)
	}
	later := p.clone()
	later.st.Spec.ProtocolVersion++
	for _, m := range later.st.Messages {
		e := exchange.Envelope{
			Protocol: plan.Triples, Version: later.st.Spec.ProtocolVersion, Session: later.session(roster), Round: m.Round, Name: m.Name,
			From: round.Party(m.From), To: round.All, Transcript: round.Digest(m.Transcript), Digest: round.Digest(m.Digest),
		}
		m.Signature = e.Sign(keys[1])
	}
	versioned, err := proto.MarshalOptions{Deterministic: true}.Marshal(later.st)
	if err != nil {
		t.Fatal(err)
	}
	renamed := &config.Roster{Parties: slices.Clone(roster.Parties)}
	renamed.Parties[2].Name = "somebody else"
	for what, c := range map[string]struct {
		roster *config.Roster
		file   []byte
		want   evidence.Problem
	}{
		"a field more":             {roster, long, evidence.Unreadable},
		"a field of the statement": {roster, signedFile(append(statement, unknown...), keys[0]), evidence.Unreadable},
		"the next version":         {roster, signedFile(versioned, keys[0]), evidence.OtherVersion},
		"another roster":           {renamed, file, evidence.OtherRoster},
	} {
		var known *evidence.Error
		if err := judge(c.roster, c.file); !errors.As(err, &known) || known.Problem != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
