package threshold

import (
	"crypto/ed25519"
	"encoding/json"
	"io"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
)

// Provenance holds an attester's signatures on the origin of the ciphertexts of a file, one for
// each request for the file. The parties verify it with the attester's public key; clients need not
// verify it.
type Provenance struct {
	Attester   string   `json:"attester"`
	Circuit    string   `json:"circuit"`
	Epoch      uint64   `json:"epoch"` // epoch whose holders decrypt
	Batch      int      `json:"batch"` // maximal number of messages in a request
	Signatures [][]byte `json:"signatures"`
}

const (
	provenanceFormat = "lodge threshold provenance 1"
	maxProvenance    = 16 << 20
)

// provenanceRecord is the JSON form of a Provenance.
type provenanceRecord struct {
	Format string `json:"format"`
	Provenance
}

// Attest signs the origin of a file's ciphertexts, as an attester that the parties' policies name.
// The signatures are for requests of at most the given number of messages, to the holders of an
// epoch with the file's keys.
func (f *File) Attest(epoch uint64, most int, attester, circuit string, key ed25519.PrivateKey) (*Provenance, error) {
	k := &Key{Epoch: epoch, Params: f.Params, Digest: f.Keys}
	if _, err := k.load(); err != nil {
		return nil, err
	}
	list, err := f.Requests(most)
	if err != nil {
		return nil, err
	}
	p := &Provenance{Attester: attester, Circuit: circuit, Epoch: epoch, Batch: most}
	for _, r := range list {
		if err := r.Sign(k, attester, circuit, key); err != nil {
			return nil, err
		}
		p.Signatures = append(p.Signatures, r.Signature)
	}
	return p, nil
}

// Put adds the signatures to the requests of the file that was signed.
func (p *Provenance) Put(list []*Request) error {
	if len(list) != len(p.Signatures) {
		return lodge.Errorf(lodge.Invalid, "sign this file", "%d signatures for %d requests", len(p.Signatures), len(list))
	}
	for i, r := range list {
		r.Attester, r.Circuit, r.Signature = p.Attester, p.Circuit, p.Signatures[i]
	}
	return nil
}

// WriteTo writes the provenance as JSON.
func (p *Provenance) WriteTo(w io.Writer) (int64, error) {
	return jsonfile.Write(w, provenanceRecord{provenanceFormat, *p})
}

// ReadProvenance reads the output of WriteTo.
func ReadProvenance(in io.Reader) (*Provenance, error) {
	var r provenanceRecord
	d := json.NewDecoder(io.LimitReader(in, maxProvenance))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || r.Format != provenanceFormat {
		return nil, lodge.Errorf(lodge.Invalid, "`lodge decrypt attest` writes one", "not an attester's file: %v", err)
	}
	if r.Attester == "" || r.Epoch == 0 || r.Batch < 1 || len(r.Signatures) == 0 {
		return nil, lodge.Errorf(lodge.Invalid, "`lodge decrypt attest` writes one", "the attester, epoch, batch or signatures are missing")
	}
	for _, s := range r.Signatures {
		if len(s) != ed25519.SignatureSize {
			return nil, lodge.Errorf(lodge.Invalid, "`lodge decrypt attest` writes one", "a signature of %d bytes", len(s))
		}
	}
	return &r.Provenance, nil
}
