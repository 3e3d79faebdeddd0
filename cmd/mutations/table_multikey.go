package main

// multikeyRotations are the tests of what is asked and given of rotations elsewhere.
const multikeyRotations = "TestRotationRefusals|TestRotationKeyRefusals"

var multikeyTable = []mutation{
	{
		Name: "name", File: "set.go", Run: "Validate", Protects: "a set that is not secure says so in its name",
		Old: "case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:", New: "case false:",
	},
	{
		Name: "dropped", File: "set.go", Run: "Validate", Protects: "what keys do not have is far below their errors",
		Old: "case s.Drop < 0 || math.Exp2(float64(s.Drop)) > s.Ring*(1<<ringBits)/4 && s.Drop > 0:", New: "case s.Drop < 0:",
	},
	{
		Name: "most-parties", File: "set.go", Run: "Sets", Protects: "a set is for the parties that it was made for",
		Old: "parties >= 1 && parties <= s.Parties && !s.Insecure", New: "parties <= s.Parties && !s.Insecure",
	},
	{
		Name: "shipped", File: "set.go", Run: "Sets", Protects: "no set that is not secure is chosen by itself",
		Old: "parties <= s.Parties && !s.Insecure && !s.Legacy() {", New: "parties <= s.Parties && s.Insecure {",
	},
	{
		Name: "secret-length", File: "secret.go", Run: "SecretEncoding", Protects: "a secret key has one length",
		Old: "case len(src) != s.SecretSize():", New: "case len(src) < s.SecretSize():",
	},
	{
		Name: "secret-set", File: "secret.go", Run: "SecretEncoding", Protects: "a secret key of another set is refused",
		Old: "case [32]byte(src) != s.hash:", New: "case false:",
	},
	{
		Name: "secret-string", File: "secret.go", Run: "SecretEncoding",
		Protects: "a secret key of another common reference string is refused",
		Old:      "case [32]byte(src[32:]) != s.crs:", New: "case false:",
	},
	{
		Name: "secret-blocks", File: "secret.go", Run: "SecretEncoding",
		Protects: "blind rotation gets blocks of which at most one coordinate is 1",
		Old:      "if crowded != 0 {", New: "if false {",
	},
	{
		Name: "missing-secret", File: "secret.go", Run: "Decryption", Protects: "a bit is of the whole phase",
		Old: "if !found {", New: "if !found && false {",
	},
	{
		Name: "share-of-malformed", File: "secret.go", Run: "Decryption", Protects: "a share is of a ciphertext of the set",
		Old: "if err := k.s.Check(c); err != nil {", New: "if err := k.s.Check(c); err != nil && false {",
	},
	{
		Name: "no-ciphertext", File: "ciphertext.go", Run: "TasksAreRefused", Protects: "an operand that is missing is refused",
		Old: "if c == nil {", New: "if false {",
	},
	{
		Name: "parties", File: "ciphertext.go", Run: "TasksAreRefused", Protects: "a ciphertext has no more parties than noise allows",
		Old: "if len(c.Parts) > s.Parties {", New: "if false {",
	},
	{
		Name: "dimension", File: "ciphertext.go", Run: "TasksAreRefused|Decryption",
		Protects: "no index is beyond a part of a ciphertext",
		Old:      "if len(p.A) != s.Dim {", New: "if false {",
	},
	{
		Name: "order", File: "ciphertext.go", Run: "CiphertextEncoding", Protects: "a ciphertext has one encoding, and a key once",
		Old: "if i > 0 && bytes.Compare(", New: "if false && bytes.Compare(",
	},
	{
		Name: "order-of-equals", File: "ciphertext.go", Run: "CiphertextEncoding|TasksAreRefused",
		Protects: "a key is in a ciphertext once",
		Old:      "bytes.Compare(c.Parts[i-1].Key[:], p.Key[:]) >= 0 {", New: "bytes.Compare(c.Parts[i-1].Key[:], p.Key[:]) > 0 {",
	},
	{
		Name: "empty", File: "ciphertext.go", Run: "CiphertextEncoding", Protects: "nothing is read of no bytes",
		Old: "if len(src) == 0 {", New: "if false {",
	},
	{
		Name: "encoded-parties", File: "ciphertext.go", Run: "CiphertextEncoding",
		Protects: "the size of a ciphertext is bounded before anything is allocated",
		Old:      "if k > s.Parties {", New: "if false {",
	},
	{
		Name: "too-short", File: "ciphertext.go", Run: "Encoding", Protects: "nothing is read beyond the bytes",
		Old: "case have < want:", New: "case false:",
	},
	{
		Name: "too-long", File: "ciphertext.go", Run: "Encoding", Protects: "nothing hides behind what is read",
		Old: "case have > want:", New: "case false:",
	},
	{
		Name: "decoded", File: "ciphertext.go", Run: "CiphertextEncoding", Protects: "what is decoded is a ciphertext",
		Old: "	if err := s.Check(c); err != nil {\n		return nil, err\n	}\n	return c, nil\n", New: "	return c, nil\n",
	},
	{
		Name: "batch-head", File: "ciphertext.go", Run: "BatchEncoding", Protects: "nothing is read beyond a batch",
		Old: "if len(src) < batchHead {", New: "if false {",
	},
	{
		Name: "batch-set", File: "ciphertext.go", Run: "BatchEncoding", Protects: "a batch of another set is refused",
		Old: "if [32]byte(src) != s.hash {", New: "if false {",
	},
	{
		Name: "batch-count", File: "ciphertext.go", Run: "BatchEncoding", Protects: "the size of a batch is bounded",
		Old: "if count > MaxBatch {", New: "if false {",
	},
	{
		Name: "header", File: "chunks.go", Run: "Chunks", Protects: "a header has one length",
		Old: "case len(header) != HeaderSize:", New: "case len(header) < HeaderSize:",
	},
	{
		Name: "keys-set", File: "chunks.go", Run: "Chunks", Protects: "keys of another set are refused",
		Old: "case [32]byte(header) != s.hash:", New: "case false:",
	},
	{
		Name: "keys-string", File: "chunks.go", Run: "Chunks", Protects: "keys of another common reference string are refused",
		Old: "case [32]byte(header[32:]) != s.crs:", New: "case false:",
	},
	{
		Name: "owner", File: "chunks.go", Run: "Chunks", Protects: "a party registers no keys of another one",
		Old: "got != owner {", New: "got != owner && false {",
	},
	{
		Name: "chunk-number", File: "chunks.go", Run: "Chunks", Protects: "a chunk has a place",
		Old: "if i < 0 || i >= len(r.have) {", New: "if i >= len(r.have) {",
	},
	{
		Name: "chunk-length", File: "chunks.go", Run: "Chunks", Protects: "a chunk has one length",
		Old: `if err := exactly("chunk", len(chunk), s.ChunkSize(i)); err != nil {`,
		New: `if err := exactly("chunk", len(chunk), s.ChunkSize(i)); err != nil && false {`,
	},
	{
		Name: "chunk-twice", File: "chunks.go", Run: "Chunks", Protects: "a chunk that has come is not replaced",
		Old: "if sum != r.hashes[i] {", New: "if false {",
	},
	{
		Name: "missing-chunks", File: "chunks.go", Run: "Chunks", Protects: "keys are whole",
		Old: "if list := r.Missing(); len(list) > 0 {", New: "if list := r.Missing(); len(list) > 1 {",
		Redundant: "the digest of a chunk that is missing is 0, and the name another",
	},
	{
		Name: "keys-name", File: "chunks.go", Run: "Chunks", Protects: "keys that were received are those of the name",
		Old: "got != id {", New: "got != id && false {",
	},
	{
		Name: "no-keys", File: "evaluator.go", Run: "KeysOfOthers", Protects: "keys that are none are refused",
		Old: "case k == nil || k.s == nil:", New: "case k == nil:",
	},
	{
		Name: "added-set", File: "evaluator.go", Run: "KeysOfOthers", Protects: "keys of another set do not index what they have not",
		Old: "case k.s.hash != s.hash:", New: "case false:",
	},
	{
		Name: "added-string", File: "evaluator.go", Run: "KeysOfOthers",
		Protects: "keys of another common reference string spoil nothing",
		Old:      "case k.s.crs != s.crs:", New: "case false:",
	},
	{
		Name: "rotated-number", File: "evaluator.go", Run: multikeyRotations, Protects: "every rotation has a result",
		Old: "if len(got) != len(list) {", New: "if false {",
	},
	{
		Name: "rotated-size", File: "evaluator.go", Run: multikeyRotations, Protects: "results of rotations are of the set",
		Old: "if len(a) != e.s.accumulatorWords() {", New: "if false {",
	},
	{
		Name: "rotation-key", File: "rotator.go", Run: multikeyRotations, Protects: "rotations are with keys that are here",
		Old: "if keys[i] == nil {", New: "if false {",
	},
	{
		Name: "exponents", File: "rotator.go", Run: multikeyRotations, Protects: "there is an exponent for each coordinate",
		Old: "if len(list) != s.Dim {", New: "if false {",
	},
	{
		Name: "exponent", File: "rotator.go", Run: multikeyRotations, Protects: "exponents are below 2N",
		Old: "if int(e) >= 2*s.N() {", New: "if false {",
	},
	{
		Name: "exponents-size", File: "rotator.go", Run: multikeyRotations, Protects: "encoded exponents have their size",
		Old: `if err := exactly("exponents", len(b), s.ExponentsSize()); err != nil {`, New: "if err := error(nil); err != nil {",
	},
	{
		Name: "accumulator-size", File: "rotator.go", Run: multikeyRotations, Protects: "encoded accumulators have their size",
		Old: `if err := exactly("accumulator", len(b), s.AccumulatorSize()); err != nil {`, New: "if err := error(nil); err != nil {",
	},
	{
		Name: "rotation-header", File: "rotator.go", Run: multikeyRotations, Protects: "a header of rotation keys has its size",
		Old: "case len(header) != HeaderSize:", New: "case false:",
	},
	{
		Name: "rotation-set", File: "rotator.go", Run: multikeyRotations, Protects: "rotation keys are of the set",
		Old: "case [32]byte(header) != s.hash:", New: "case false:",
	},
	{
		Name: "rotation-fewer", File: "rotator.go", Run: multikeyRotations, Protects: "rotation keys are complete",
		Old: "if errors.Is(err, io.EOF) {", New: "if false {",
	},
	{
		Name: "rotation-chunk", File: "rotator.go", Run: multikeyRotations, Protects: "chunks of rotation keys have their size",
		Old: `if err := exactly("chunk", len(chunk), s.ChunkSize(i)); err != nil {`, New: "if err := error(nil); err != nil {",
	},
	{
		Name: "rotation-more", File: "rotator.go", Run: multikeyRotations, Protects: "nothing follows rotation keys",
		Old: "if _, err := next(); err == nil {", New: "if _, err := next(); err == nil && false {",
	},
	{
		Name: "rotation-name", File: "rotator.go", Run: multikeyRotations, Protects: "rotation keys have the name that was asked for",
		Old: "if got := IDOf(header, digests); got != id {", New: "if got := IDOf(header, digests); got != id && false {",
	},
	{
		Name: "gate", File: "evaluator.go", Run: "TasksAreRefused", Protects: "a gate is one of those that there are",
		Old: "if t.Gate < And || t.Gate >= gates {", New: "if t.Gate > gates {",
	},
	{
		Name: "operands", File: "evaluator.go", Run: "TasksAreRefused", Protects: "operands are checked before anything is computed",
		Old: "if err := e.s.Check(c); err != nil {", New: "if err := e.s.Check(c); err != nil && false {",
	},
	{
		Name: "destination", File: "evaluator.go", Run: "TasksAreRefused", Protects: "there is a place for the result",
		Old: "if t.Dst == nil {", New: "if false {",
	},
	{
		Name: "union", File: "evaluator.go", Run: "TasksAreRefused", Protects: "a result has no more parties than noise allows",
		Old: "if union > e.s.Parties {", New: "if false {",
	},
	{
		Name: "unknown-key", File: "evaluator.go", Run: "TasksAreRefused|NotInvolved", Protects: "a party that has left is named",
		Old: "if x == nil {", New: "if false {",
	},
	{
		Name: "ternary", File: "keys.go", Run: "Noise$", Protects: "noise has the variance that failure is computed from",
		Old: "sample.Ternary(small, stream)\n", New: "sample.Ternary(small, stream)\n	for i := range small {\n		small[i] &= 1\n	}\n",
	},
	{
		Name: "rounding-of-keys", File: "keys.go", Run: "Noise$|Pinned", Protects: "what keys do not have is rounded",
		Old: "dst[j] = (x + half) >> drop", New: "dst[j] = (x + half - half) >> drop",
	},
}
