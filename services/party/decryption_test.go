package party

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/sample"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

const forDecryption = jobv1.Purpose_PURPOSE_DECRYPTION

// all collects the messages of a stream, and its error.
func all[T any](recv func() (T, error), each func(T)) error {
	for {
		m, err := recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		each(m)
	}
}

func prove(ctx context.Context, conn *grpc.ClientConn, h *popkv1.ProofHeader, values []byte) (ciphertexts, proof []byte, err error) {
	stream, err := popkv1.NewPopkServiceClient(conn).Prove(ctx)
	if err != nil {
		return nil, nil, err
	}
	_ = stream.Send(&popkv1.ProveRequest{Header: h, Values: values[:len(values)/2]}) // Recv returns the error
	_ = stream.Send(&popkv1.ProveRequest{Values: values[len(values)/2:]})
	_ = stream.CloseSend()
	err = all(stream.Recv, func(m *popkv1.ProveResponse) {
		ciphertexts, proof = append(ciphertexts, m.GetCiphertexts()...), append(proof, m.GetProof()...)
	})
	return ciphertexts, proof, err
}

func verifyProof(ctx context.Context, conn *grpc.ClientConn, h *popkv1.ProofHeader, ciphertexts, proof []byte) (*popkv1.VerifyResponse, error) {
	stream, err := popkv1.NewPopkServiceClient(conn).Verify(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&popkv1.VerifyRequest{Header: h})
	_ = stream.Send(&popkv1.VerifyRequest{Ciphertexts: ciphertexts})
	_ = stream.Send(&popkv1.VerifyRequest{Proof: proof})
	return stream.CloseAndRecv()
}

// decrypt requests a decryption from one party. It returns the party's share and the digest of the
// ciphertext in its ledger.
func decrypt(ctx context.Context, conn *grpc.ClientConn, h *decryptionv1.DecryptShareHeader, ciphertext, proof []byte) (share, digest []byte, err error) {
	stream, err := decryptionv1.NewDecryptionServiceClient(conn).DecryptShare(ctx)
	if err != nil {
		return nil, nil, err
	}
	_ = stream.Send(&decryptionv1.DecryptShareRequest{Header: h, Ciphertext: ciphertext})
	_ = stream.Send(&decryptionv1.DecryptShareRequest{Proof: proof})
	_ = stream.CloseSend()
	err = all(stream.Recv, func(m *decryptionv1.DecryptShareResponse) {
		share, digest = append(share, m.GetChunk()...), append(digest, m.GetCiphertextDigest()...)
	})
	return share, digest, err
}

// statement is a client's ciphertext with its proof.
type statement struct {
	header     *popkv1.ProofHeader
	values     field.Vec
	ciphertext []byte
	proof      []byte
}

func (s *statement) ask() *decryptionv1.DecryptShareHeader {
	return &decryptionv1.DecryptShareHeader{Epoch: s.header.GetEpoch(), Field: s.header.GetField(), Quorum: []uint32{0, 1, 2}, Context: s.header.GetContext()}
}

// newStatement has party 0 encrypt and prove random values for a client.
func newStatement(t *testing.T, n *network, conn *grpc.ClientConn, epoch uint64) (*statement, popk.ClientConfig) {
	t.Helper()
	s, err := params.Lookup(set)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := s.Field("p128")
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := gbfv.New(s, spec)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := popk.ClientInstance(s.Proved(), "p128", 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := scheme.Field
	st := &statement{header: &popkv1.ProofHeader{Epoch: epoch, Field: "p128", Context: []byte("test"), Ciphertexts: 1}, values: f.NewVec(scheme.Slots())}
	if err := f.Random(st.values, sample.NewSource(bytes.Repeat([]byte{7}, sample.SeedSize)).Stream("values")); err != nil {
		t.Fatal(err)
	}
	encoded := make([]byte, st.values.Len()*f.Size())
	f.EncodeVec(encoded, st.values)
	if st.ciphertext, st.proof, err = prove(n.context(), conn, st.header, encoded); err != nil {
		t.Fatal(err)
	}
	return st, popk.ClientConfig{Scheme: scheme, Instance: instance, Prover: devnet.App, Context: st.header.GetContext(), Workers: 2}
}

// A client's values are encrypted and proved at one party, verified at another, and decrypted by
// all, once.
func TestDecryption(t *testing.T) {
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		f.Policy.DecryptionsPerHour = 2
		f.Clients[0].Permissions = append(f.Clients[0].Permissions, config.PermDecrypt)
	})
	n.keys(1, forDecryption)
	st, c := newStatement(t, n, n.nodes[0].app, 1)
	ctx := n.context()
	if r, err := verifyProof(ctx, n.nodes[1].app, st.header, st.ciphertext, st.proof); err != nil || !r.GetAccepted() {
		t.Fatalf("a proof is refused: %v, %v", r, err)
	}
	if r, err := verifyProof(ctx, n.nodes[1].client, st.header, st.ciphertext, st.proof); err != nil || r.GetAccepted() || r.GetCheck() != "proof" {
		t.Errorf("somebody else's proof: %v, %v", r, err)
	}

	var shares [][]byte
	for i, x := range n.nodes {
		share, digest, err := decrypt(ctx, x.app, st.ask(), st.ciphertext, st.proof)
		if err != nil {
			t.Fatalf("party %d: %v", i, err)
		}
		again, _, err := decrypt(ctx, x.app, st.ask(), st.ciphertext, st.proof)
		if err != nil || !bytes.Equal(share, again) {
			t.Errorf("party %d: asking again gives other bytes (%v)", i, err)
		}
		shares = append(shares, share)
		q := &decryptionv1.GetDecryptionRequest{Epoch: 1, CiphertextDigest: digest, Quorum: []uint32{0, 1, 2}}
		r, err := decryptionv1.NewDecryptionServiceClient(x.app).GetDecryption(ctx, q)
		if err != nil || !r.GetAnswered() || !r.GetToCaller() {
			t.Errorf("party %d: ledger %v, %v", i, r, err)
		}
		r, err = decryptionv1.NewDecryptionServiceClient(x.client).GetDecryption(ctx, q)
		if err != nil || !r.GetAnswered() || r.GetToCaller() {
			t.Errorf("party %d: ledger for another client %v, %v", i, r, err)
		}
	}
	c.Key, c.KeyHash = publicKey(t, n, c.Scheme)
	doubled, err := popk.Verify(ctx, c, st.ciphertext, st.proof)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ddec.Combine(c.Scheme, c.Instance, doubled[0], shares)
	if err != nil {
		t.Fatal(err)
	}
	want := c.Scheme.Field.NewVec(got.Len())
	c.Scheme.Field.AddVec(want, st.values, st.values)
	if !c.Scheme.Field.EqualVec(got, want) {
		t.Error("the decryption is not twice the values")
	}

	x := n.nodes[0]
	if _, _, err = decrypt(ctx, x.client, st.ask(), st.ciphertext, st.proof); err == nil {
		t.Error("another client decrypted the ciphertext")
	}
	second, _ := newStatement(t, n, x.app, 1)
	if _, _, err = decrypt(ctx, x.app, second.ask(), second.ciphertext, second.proof); err != nil {
		t.Errorf("the second decryption within the rate: %v", err)
	}
	third, _ := newStatement(t, n, x.app, 1)
	_, _, err = decrypt(ctx, x.app, third.ask(), third.ciphertext, third.proof)
	refused(t, err, rpc.RateLimited)
	if _, _, err = decrypt(ctx, x.app, st.ask(), st.ciphertext, st.proof); err != nil {
		t.Errorf("a repeated request counts against the rate: %v", err)
	}

	x.stop() // the ledger outlives the process
	n.start(0)
	share, _, err := decrypt(ctx, x.app, st.ask(), st.ciphertext, st.proof)
	if err != nil || !bytes.Equal(share, shares[0]) {
		t.Errorf("after a restart the answer is another one (%v)", err)
	}
}

func publicKey(t *testing.T, n *network, s *gbfv.Scheme) (*gbfv.PublicKey, [32]byte) {
	t.Helper()
	stream, err := keygenv1.NewKeygenServiceClient(n.nodes[2].app).GetPublicKey(n.context(), &keygenv1.GetPublicKeyRequest{Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	if err := all(stream.Recv, func(m *keygenv1.GetPublicKeyResponse) { frames = append(frames, m.GetChunk()) }); err != nil || len(frames) != 2 {
		t.Fatalf("public key in %d frames: %v", len(frames), err)
	}
	key, hash, err := keygen.DecodePublic(s, frames[0], frames[1])
	if err != nil {
		t.Fatal(err)
	}
	return key, hash
}

// Every refusal of a decryption, and of proofs.
func TestDecryptionRefusals(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forDecryption)
	n.keys(2, forKeys)
	x, ctx := n.nodes[0], n.context()
	st, _ := newStatement(t, n, x.app, 1)
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)/2] ^= 1
		return b
	}
	for _, c := range []struct {
		name   string
		change func(h *decryptionv1.DecryptShareHeader, s *statement)
		want   rpc.Code
	}{
		{"an epoch for triples", func(h *decryptionv1.DecryptShareHeader, _ *statement) { h.Epoch = 2 }, rpc.KeyPurpose},
		{"an epoch that does not exist", func(h *decryptionv1.DecryptShareHeader, _ *statement) { h.Epoch = 3 }, rpc.NotFound},
		{"two of three parties", func(h *decryptionv1.DecryptShareHeader, _ *statement) { h.Quorum = []uint32{0, 1} }, rpc.Invalid},
		{"another field", func(h *decryptionv1.DecryptShareHeader, _ *statement) { h.Field = "p256" }, rpc.Invalid},
		{"another context", func(h *decryptionv1.DecryptShareHeader, _ *statement) { h.Context = nil }, rpc.Invalid},
		{"a bit of the ciphertext", func(_ *decryptionv1.DecryptShareHeader, s *statement) { s.ciphertext = flip(s.ciphertext) }, rpc.Invalid},
		{"a bit of the proof", func(_ *decryptionv1.DecryptShareHeader, s *statement) { s.proof = flip(s.proof) }, rpc.Invalid},
		{"no proof", func(_ *decryptionv1.DecryptShareHeader, s *statement) { s.proof = nil }, rpc.Invalid},
		{"trailing bytes", func(_ *decryptionv1.DecryptShareHeader, s *statement) { s.proof = append(bytes.Clone(s.proof), 0) }, rpc.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, s := st.ask(), *st
			c.change(h, &s)
			_, _, err := decrypt(ctx, x.app, h, s.ciphertext, s.proof)
			refused(t, err, c.want)
		})
	}
	t.Run("no permission", func(t *testing.T) {
		_, _, err := decrypt(ctx, x.client, st.ask(), st.ciphertext, st.proof)
		refused(t, err, rpc.Forbidden)
	})
	t.Run("no header", func(t *testing.T) {
		_, _, err := decrypt(ctx, x.app, nil, st.ciphertext, st.proof)
		refused(t, err, rpc.Invalid)
	})
	t.Run("an empty stream", func(t *testing.T) {
		stream, err := decryptionv1.NewDecryptionServiceClient(x.app).DecryptShare(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		_, err = stream.Recv()
		refused(t, err, rpc.Invalid)
	})
	for name, h := range map[string]*popkv1.ProofHeader{
		"proof without ciphertexts":   {Epoch: 1, Field: "p128"},
		"proof of too many":           {Epoch: 1, Field: "p128", Ciphertexts: 1 << 20},
		"proof that slots are equal":  {Epoch: 1, Field: "p128", Ciphertexts: 1, Diagonal: true},
		"proof without enough values": {Epoch: 1, Field: "p128", Ciphertexts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := prove(ctx, x.app, h, make([]byte, 16))
			refused(t, err, rpc.Invalid)
		})
	}
	t.Run("a value that is not canonical", func(t *testing.T) {
		_, _, err := prove(ctx, x.app, st.header, bytes.Repeat([]byte{255}, 16*st.values.Len()))
		refused(t, err, rpc.Invalid)
	})
	t.Run("a retired epoch", func(t *testing.T) {
		_, err := keygenv1.NewKeygenServiceClient(x.client).RetireEpoch(ctx, &keygenv1.RetireEpochRequest{Epoch: 1, Reason: "test"})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = decrypt(ctx, x.app, st.ask(), st.ciphertext, st.proof)
		refused(t, err, rpc.Burnt)
	})
}
