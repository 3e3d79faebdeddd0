package main

var bgvTable = []mutation{
	{
		Name: "name", File: "set.go", Protects: "a set for tests says so in its name",
		Old: "case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:", New: "case false:",
	},
	{
		Name: "rounding", File: "set.go", Protects: "what a switch adds to the noise is within what decryption is made for",
		Old: "math.Exp2(float64(s.LogNoise)) < 1.5*s.Rounding(MaxParties):", New: "false:",
	},
	{
		Name: "scale", File: "ciphertext.go", Protects: "a ciphertext of Lattigo has a scale that can be divided by",
		Old: "if !ct.Scale.Value.IsInt() || scale == 0 || scale >= s.T {", New: "if !ct.Scale.Value.IsInt() {",
	},
	{
		Name: "residue", File: "ciphertext.go", Protects: "a ciphertext of Lattigo has residues",
		Old: "if v >= s.Q[k] {", New: "if v >= s.Q[k] && false {",
	},
	{
		Name: "length", File: "ciphertext.go", Protects: "the size of a ciphertext is bounded before anything is allocated",
		Old: "|| len(b) != s.CiphertextSize(int(b[0])) {", New: "|| len(b) < s.CiphertextSize(int(b[0])) {",
	},
	{
		Name: "encoded-scale", File: "ciphertext.go", Protects: "an encoded ciphertext has a scale that can be divided by",
		Old: "if c.Scale == 0 || c.Scale >= s.T {", New: "if false {",
	},
	{
		Name: "keys-length", File: "chunks.go", Protects: "the size of keys is bounded before anything is allocated",
		Old: "|| len(b) != HeaderSize(int(b[minHeader-1])) {", New: "|| len(b) < HeaderSize(int(b[minHeader-1])) {",
	},
	{
		Name: "keys-set", File: "chunks.go", Protects: "keys of another set are refused",
		Old: "if set := s.Hash(); [32]byte(b) != set {", New: "if set := s.Hash(); [32]byte(b) != set && false {",
	},
	{
		Name: "keys-digest", File: "chunks.go", Protects: "keys that were received are those of the digest",
		Old: "if got := DigestOf(r.header, r.hashes); got != digest {", New: "if got := DigestOf(r.header, r.hashes); got != digest && false {",
	},
	{
		Name: "public-digest", File: "chunks.go", Protects: "a public key that was received is that of the digest",
		Old: "|| DigestOf(header, chunks) != digest:", New: ":",
	},
	{
		Name: "public-chunk", File: "chunks.go", Protects: "a public key that was received is that of the digest",
		Old: "case sha256.Sum256(chunk) != chunks[0]:", New: "case false:",
	},
	{
		Name: "automorphisms", File: "keys.go", Protects: "keys have one encoding",
		Old: "if g <= last || g%2 == 0 || g >= 2<<s.LogN {", New: "if g == last || g%2 == 0 || g >= 2<<s.LogN {",
	},
}

var bgvkeysTable = []mutation{
	{
		Name: "majority", File: "config.go", Protects: "there is an honest majority",
		Old: "case t < 1 || n < 2*t+1 || n > bgv.MaxParties:", New: "case t < 1 || n > bgv.MaxParties:",
	},
	{
		Name: "bound", File: "start.go", Protects: "dealers cannot choose shares when they know the coin",
		Old: "if !bound && !r.Session.Hooks.Skips(CheckBound) {", New: "if !bound && false {",
	},
	{
		Name: "fits", File: "start.go", Protects: "dealt shares are of the announced polynomials",
		Old: "if !r.fits(from, said) {", New: "if !r.fits(from, said) && false {",
	},
	{
		Name: "degree", File: "start.go", Run: "Degree", Protects: "a party that was dealt wrong shares complains",
		Old: "Check: CheckDegree, Mine: complaints,", New: "Check: CheckDegree, Mine: make([]byte, r.n),",
	},
	{
		Name: "dealt-frame", File: "start.go", Protects: "all dealt shares are there",
		Old: "if last != (index == r.frames()-1) || len(frame) != r.size(rows) {",
		New: "if last != (index == r.frames()-1) && false || len(frame) != r.size(rows) {",
	},
	{
		Name: "dealt-residues", File: "start.go", Protects: "dealt shares have one encoding",
		Old: "if frame, err = r.unpack(r.row, row.prime, frame); err != nil {",
		New: "if frame, err = r.unpack(r.row, row.prime, frame); err != nil && false {",
	},
	{
		Name: "announced-length", File: "check.go", Protects: "announcements have one length",
		Old: "if len(b) != p.announcedSize() {", New: "if len(b) > p.announcedSize() {",
	},
	{
		Name: "announced-residues", File: "check.go", Protects: "announcements have one encoding",
		Old: "if b, err = p.unpack(v, k, b); err != nil {", New: "if b, err = p.unpack(v, k, b); err != nil && false {",
	},
	{
		Name: "masked", File: "dealer.go", Protects: "the check of what is dealt says nothing of secrets",
		Old: "sample.Uniform(dst, d.primes[r.prime], stream)", New: "clear(dst)",
	},
	{
		Name: "opened-frame", File: "open.go", Protects: "all opened shares are there",
		Old: "if last != (index == r.samples()-1) || len(frame) != r.sampleSize() {",
		New: "if last != (index == r.samples()-1) && false || len(frame) != r.sampleSize() {",
	},
	{
		Name: "opened-residues", File: "open.go", Protects: "opened shares have one encoding",
		Old: "if frame, err = r.unpack(v, k, frame); err != nil {",
		New: "if frame, err = r.unpack(v, k, frame); err != nil && false {",
	},
	{
		Name: "opened", File: "open.go", Protects: "keys are what was dealt",
		Old: "if len(faults.Possible) > 0 && !r.Session.Hooks.Skips(CheckOpened) {",
		New: "if len(faults.Possible) > 0 && false {",
	},
	{
		Name: "opened-blame", File: "open.go", Protects: "who must be wrong is named",
		Old: "if len(faults.Certain) > 0 {", New: "if len(faults.Certain) > 0 && false {",
	},
	{
		Name: "agree", File: "open.go", Protects: "all have the same keys",
		Old: "if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil {",
		New: "if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil && false {",
	},
}

// Packages that deal with seeds and complaints.
var dealing = []string{"./engine/protocol/threshold/keygen", "./engine/protocol/threshold/bgvkeys"}

var seedsTable = []mutation{
	{
		Name: "length", File: "seeds.go", Tests: dealing, Protects: "seeds have one length",
		Old: "if len(b) != r.size(from, int(r.Session.Self)) {", New: "if len(b) > r.size(from, int(r.Session.Self)) {",
	},
}

var complaintTable = []mutation{
	{
		Name: "consequence", File: "complaint.go", Tests: dealing, Run: "Degree", Protects: "complaints about dealt shares have consequences",
		Old: "err != nil && !r.Session.Hooks.Skips(r.Check) {", New: "err != nil && false {",
	},
	{
		Name: "length", File: "complaint.go", Protects: "there is a complaint, or none, of every dealer",
		Old: "if len(list) != len(against) {", New: "if len(list) > len(against) {",
	},
	{
		Name: "self", File: "complaint.go", Protects: "a complaint is about another",
		Old: "if c > 1 || c == 1 && dealer == from {", New: "if c > 1 || dealer == -1 {",
	},
	{
		Name: "dealer", File: "complaint.go", Protects: "a dealer of wrong shares is named",
		Old: "if slices.Contains(list, self) || len(list) > threshold && dealer != self {",
		New: "if slices.Contains(list, self) && false {",
	},
	{
		Name: "false", File: "complaint.go", Protects: "who complains of right shares is named",
		Old: "if list := against[self]; len(list) > 0 {", New: "if list := against[self]; len(list) > 0 && false {",
	},
	{
		Name: "suspects", File: "complaint.go", Protects: "a complaint about others ends the run",
		Old: "if len(list) > 0 {\n\t\t\tsuspects", New: "if len(list) > 0 && false {\n\t\t\tsuspects",
	},
}

var bgvdecryptTable = []mutation{
	{
		Name: "agreement", File: "rounds.go", Protects: "parties answer for the same ciphertexts, to the same recipient",
		Old: "if round.Digest(b[:headerSize]) != r.head {", New: "if round.Digest(b[:headerSize]) != r.head && false {",
	},
	{
		Name: "agreement-of-answers", File: "rounds.go", Protects: "answers are of one run, and of one ciphertext",
		Old: "if round.Digest(frame[:headerSize]) != r.of(k) {",
		New: "if round.Digest(frame[:headerSize]) != r.of(k) && false {",
	},
	{
		Name: "ciphertexts", File: "rounds.go", Protects: "what parties agree on are the ciphertexts",
		Old: "range []ring.Poly{c.C0, c.C1} {", New: "range []ring.Poly{c.C1} {",
	},
	{
		Name: "seed", File: "rounds.go", Protects: "a seed has one length",
		Old: "if len(b) != r.size(w.From) {", New: "if len(b) > r.size(w.From) {",
	},
	{
		Name: "frame", File: "rounds.go", Protects: "every ciphertext has an answer",
		Old: "if last != (k == len(r.low)-1) || len(frame) != f.AnswerSize() {",
		New: "if last != (k == len(r.low)-1) && false || len(frame) != f.AnswerSize() {",
	},
	{
		Name: "residues", File: "rounds.go", Protects: "an answer has one encoding",
		Old: "frame[headerSize:]); err != nil {", New: "frame[headerSize:]); err != nil && false {",
	},
	{
		Name: "zero", File: "rounds.go", Protects: "an answer alone says nothing to who knows shares of others",
		Old: "f.zero(zero, seed, k)", New: "_ = seed",
	},
	{
		Name: "flood", File: "flooding.go", Protects: "answers say nothing of the noise",
		Old: "sample.Flood(e, f.bound, flood)", New: "_ = flood",
	},
	{
		Name: "distance", File: "flooding.go", Protects: "floods are as large as the distance asks",
		Old: "if f.bound.Sign() <= 0 || f.Distance().Cmp(", New: "if f.bound.Sign() <= 0 || false && f.Distance().Cmp(",
	},
	{
		Name: "level", File: "flooding.go", Protects: "ciphertexts are flooded where there is room",
		Old: "if c.Level < f.scheme.FloodLevel {", New: "if false {",
	},
	{
		Name: "key", File: "flooding.go", Protects: "ciphertexts that share their flood are known for it",
		Old: "codec.AppendPoly(nil, low.C1.C, f.basis.Primes())), nil",
		New: "codec.AppendPoly(nil, low.C0.C, f.basis.Primes())), nil",
	},
	{
		Name: "combine", File: "flooding.go", Protects: "answers are of one run, outside too",
		Old: "|| string(a[:headerSize]) != string(answers[0][:headerSize]) {", New: "{",
	},
	{
		Name: "combine-residues", File: "flooding.go", Protects: "an answer has one encoding, outside too",
		Old: "a[headerSize:]); err != nil {", New: "a[headerSize:]); err != nil && false {",
	},
	{
		Name: "degree", File: "coefficients.go", Protects: "a coefficient is one of the ciphertext",
		Old: "if k < 0 || k >= s.N() {", New: "if k >= s.N() {",
	},
	{
		Name: "share", File: "coefficients.go", Protects: "who decrypts is of the quorum",
		Old: "|| !slices.Contains(quorum, self) {", New: "|| false {",
	},
}
