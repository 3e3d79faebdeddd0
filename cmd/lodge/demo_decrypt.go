package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/sample"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/devnet"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// decryptReport is the outcome of `lodge demo decrypt`.
type decryptReport struct {
	Parties         int     `json:"parties"`
	Field           string  `json:"field"`
	Params          string  `json:"params"`
	Values          int     `json:"values"`
	Correct         int     `json:"correct"`
	KeygenSeconds   float64 `json:"keygen_seconds"`
	EncryptSeconds  float64 `json:"encrypt_seconds"`
	DecryptSeconds  float64 `json:"decrypt_seconds"`
	RequestBytes    int     `json:"request_bytes"`
	AnswerBytes     int     `json:"answer_bytes_per_party"`
	Repeated        bool    `json:"repeat_gives_same_bytes"`
	KeygenSecurity  string  `json:"keygen_security"`
	StatisticalBits int     `json:"statistical_security_bits"`
}

// demoDecryptCommand is `lodge demo decrypt`.
func demoDecryptCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "decrypt",
		Short: "Encrypt a vector as a client, have it decrypted jointly, and compare",
		Long: "Start a cluster as `lodge demo` does, generate keys for decryption, encrypt a random vector as a client with a\n" +
			"proof that the client knows it, ask every party for its message of the decryption, combine them, and compare.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemoDecrypt(cmd, &o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.parties, "parties", 3, "number of parties")
	f.StringVar(&o.field, "field", "p128", "field: p64 to p4096")
	f.StringVar(&o.params, "params", params.Default, "parameter set")
	f.BoolVar(&o.json, "json", false, "write the result as JSON")
	f.BoolVar(&o.keep, "keep", false, "keep the working directory: configurations, logs and vaults")
	return cmd
}

func runDemoDecrypt(cmd *cobra.Command, o *demoOptions) (err error) {
	reported := false
	defer func() { err = o.ended(cmd, err, reported) }()
	if err := checkParties(o.parties); err != nil {
		return err
	}
	set, err := params.Lookup(o.params)
	if err != nil {
		return err
	}
	spec, err := set.Field(o.field)
	if err != nil {
		return err
	}
	scheme, err := gbfv.New(set, spec)
	if err != nil {
		return err
	}
	instance, err := popk.ClientInstance(set, o.field, o.parties, 1)
	if err != nil {
		return err
	}
	c, err := startCluster(cmd, clusterOptions{parties: o.parties, set: o.params, keep: o.keep})
	if err != nil {
		return err
	}
	defer c.stop()
	r := &decryptReport{Parties: o.parties, Field: o.field, Params: o.params, StatisticalBits: instance.StatSecurityBits}
	began := time.Now()
	keys, err := c.job(cmd.Context(), &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: o.params, Purpose: jobv1.Purpose_PURPOSE_DECRYPTION, Timeout: durationpb.New(time.Hour),
	})
	if err != nil {
		return err
	}
	r.KeygenSeconds = time.Since(began).Seconds()
	r.KeygenSecurity = keys.GetParties()[0].GetStatus().GetKeygenSecurity()
	d := &decryption{cluster: c, report: r, epoch: keys.GetEpoch(), field: o.field, client: popk.ClientConfig{
		Scheme: scheme, Instance: instance, Prover: devnet.App, Context: []byte("lodge demo decrypt"), Workers: runtime.GOMAXPROCS(0),
	}}
	if err := d.run(cmd.Context()); err != nil {
		return err
	}
	reported = true
	if o.json {
		err = writeIndented(cmd.OutOrStdout(), r)
	} else {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), `
A client encrypted %d values over %s with %s and proved that it knows them; %d parties decrypted them together.

  right               %10d of %d
  key generation      %10.1f s   security: %s
  encryption, proof   %10.1f s   %s to each party
  decryption          %10.1f s   %s from each party; asking again gives the same bytes: %v
  statistical security%10d bits after 2^20 decrypted ciphertexts
`, r.Values, r.Field, r.Params, r.Parties, r.Correct, r.Values, r.KeygenSeconds, r.KeygenSecurity, r.EncryptSeconds,
			amount(float64(r.RequestBytes)), r.DecryptSeconds, amount(float64(r.AnswerBytes)), r.Repeated, r.StatisticalBits)
	}
	if err == nil && (r.Correct != r.Values || !r.Repeated) {
		err = errors.New("the decryption is wrong")
	}
	return err
}

// decryption is a client's view of a joint decryption.
type decryption struct {
	cluster *cluster
	report  *decryptReport
	epoch   uint64
	field   string
	client  popk.ClientConfig
}

func (d *decryption) run(ctx context.Context) error {
	f := d.client.Scheme.Field
	conns, err := d.cluster.dialAll(devnet.App)
	if err != nil {
		return err
	}
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	if err := d.publicKey(ctx, conns); err != nil {
		return err
	}
	seed := make([]byte, sample.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return err
	}
	source := sample.NewSource(seed)
	values := f.NewVec(d.client.Scheme.Slots())
	if err := f.Random(values, source.Stream("values")); err != nil {
		return err
	}
	d.cluster.progress.say("encrypting and proving %d values", values.Len())
	began := time.Now()
	ciphertext, proof, err := popk.Prove(ctx, d.client, []field.Vec{values}, source.Sub("proof"))
	if err != nil {
		return err
	}
	d.report.EncryptSeconds, d.report.RequestBytes = time.Since(began).Seconds(), len(ciphertext)+len(proof)
	began = time.Now()
	answers := make([][]byte, len(conns))
	for i, conn := range conns {
		d.cluster.progress.say("asking party %d to decrypt", i)
		if answers[i], err = d.ask(ctx, conn, len(conns), ciphertext, proof); err != nil {
			return fmt.Errorf("party %d: %w", i, rpc.FromError(err))
		}
	}
	doubled, err := popk.Verify(ctx, d.client, ciphertext, proof)
	if err != nil {
		return err
	}
	got, err := ddec.Combine(d.client.Scheme, d.client.Instance, doubled[0], answers)
	if err != nil {
		return err
	}
	d.report.DecryptSeconds, d.report.AnswerBytes = time.Since(began).Seconds(), len(answers[0])
	again, err := d.ask(ctx, conns[0], len(conns), ciphertext, proof)
	if err != nil {
		return rpc.FromError(err)
	}
	d.report.Repeated = bytes.Equal(again, answers[0])
	d.report.Values = values.Len()
	f.AddVec(values, values, values) // the proof, and so the decryption, is about twice the ciphertext
	for i := range values.Len() {
		if f.Equal(values.At(i), got.At(i)) {
			d.report.Correct++
		}
	}
	return nil
}

// publicKey fetches the public key from every party; all must have the same.
func (d *decryption) publicKey(ctx context.Context, conns []*grpc.ClientConn) error {
	var first [][]byte
	for i, conn := range conns {
		stream, err := keygenv1.NewKeygenServiceClient(conn).GetPublicKey(ctx, &keygenv1.GetPublicKeyRequest{Epoch: d.epoch})
		if err != nil {
			return rpc.FromError(err)
		}
		var frames [][]byte
		for {
			r, err := stream.Recv()
			if err == io.EOF {
				break
			}
			if err != nil {
				return rpc.FromError(err)
			}
			frames = append(frames, r.GetChunk())
		}
		if len(frames) != 2 {
			return fmt.Errorf("party %d sent a public key in %d pieces", i, len(frames))
		}
		if first == nil {
			first = frames
		}
		if !bytes.Equal(frames[0], first[0]) || !bytes.Equal(frames[1], first[1]) {
			return fmt.Errorf("party %d has another public key than party 0", i)
		}
	}
	var err error
	d.client.Key, d.client.KeyHash, err = keygen.DecodePublic(d.client.Scheme, first[0], first[1])
	return err
}

// ask sends the ciphertext and its proof to one party and returns the party's message.
func (d *decryption) ask(ctx context.Context, conn *grpc.ClientConn, n int, ciphertext, proof []byte) ([]byte, error) {
	stream, err := decryptionv1.NewDecryptionServiceClient(conn).DecryptShare(ctx)
	if err != nil {
		return nil, err
	}
	h := &decryptionv1.DecryptShareHeader{Epoch: d.epoch, Field: d.field, Context: d.client.Context}
	for i := range n {
		h.Quorum = append(h.Quorum, uint32(i))
	}
	err = stream.Send(&decryptionv1.DecryptShareRequest{Header: h})
	const piece = 1 << 20
	for at := 0; err == nil && at < len(ciphertext); at += piece {
		err = stream.Send(&decryptionv1.DecryptShareRequest{Ciphertext: ciphertext[at:min(at+piece, len(ciphertext))]})
	}
	for at := 0; err == nil && at < len(proof); at += piece {
		err = stream.Send(&decryptionv1.DecryptShareRequest{Proof: proof[at:min(at+piece, len(proof))]})
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil && err != io.EOF { // after io.EOF Recv has the reason
		return nil, err
	}
	var answer []byte
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return answer, nil
		}
		if err != nil {
			return nil, err
		}
		answer = append(answer, r.GetChunk()...)
	}
}
