package threshold

import (
	"crypto/ed25519"
	"encoding/json"
	"io"
)

// Provenance is the word of an attester for a file of ciphertexts: where they come from, signed for each request that the
// file takes. Others than its holders need nothing to check it with, and the parties check it with the attester's public key.
type Provenance struct {
	Attester   string   `json:"attester"`
	Circuit    string   `json:"circuit"`
	Epoch      uint64   `json:"epoch"` // whose holders decrypt
	Batch      int      `json:"batch"` // messages of a request, at most
	Signatures [][]byte `json:"signatures"`
}

const (
	provenanceFormat = "lodge threshold provenance 1"
	maxProvenance    = 16 << 20
)

// provenanceRecord is the JSON of a Provenance.
type provenanceRecord struct {
	Format string `json:"format"`
	Provenance
}

// Attest signs where the ciphertexts of a file come from, as an attester that the parties' policies name. They are asked for
// in requests of at most so many messages, of the holders of an epoch that has the file's keys.
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

// Put puts the word into the requests of the file that it is for.
func (p *Provenance) Put(list []*Request) error {
	if len(list) != len(p.Signatures) {
		return invalid("sign this file", "%d signatures for %d requests", len(p.Signatures), len(list))
	}
	for i, r := range list {
		r.Attester, r.Circuit, r.Signature = p.Attester, p.Circuit, p.Signatures[i]
	}
	return nil
}

// WriteTo writes the word as JSON.
func (p *Provenance) WriteTo(w io.Writer) (int64, error) {
	b, err := json.MarshalIndent(provenanceRecord{provenanceFormat, *p}, "", "  ")
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(b, '\n'))
	return int64(n), err
}

// ReadProvenance reads what WriteTo has written.
func ReadProvenance(in io.Reader) (*Provenance, error) {
	var r provenanceRecord
	d := json.NewDecoder(io.LimitReader(in, maxProvenance))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || r.Format != provenanceFormat {
		return nil, invalid("`lodge decrypt attest` writes one", "no word of an attester: %v", err)
	}
	if r.Attester == "" || r.Epoch == 0 || r.Batch < 1 || len(r.Signatures) == 0 {
		return nil, invalid("`lodge decrypt attest` writes one", "a word without attester, epoch, batch or signatures")
	}
	for _, s := range r.Signatures {
		if len(s) != ed25519.SignatureSize {
			return nil, invalid("`lodge decrypt attest` writes one", "a signature of %d bytes", len(s))
		}
	}
	return &r.Provenance, nil
}
