package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// ThresholdForms are the forms of masks.
var ThresholdForms = []string{"paper", "exact"}

// Targets for a party of a quorum of two, for each ciphertext, by the form of masks.
var (
	wantDecryptMicroseconds = map[string]float64{"paper": 6, "exact": 15}
	wantDecryptBytes        = map[string]float64{"paper": 16, "exact": 24}
	wantMaskMicroseconds    = map[string]float64{"paper": 500, "exact": 100}
	wantMaskBytes           = map[string]float64{"paper": 20000, "exact": 4000}
)

// ThresholdWant returns the target of the figure of threshold keys whose name begins with stem, or
// 0 if it has none.
func ThresholdWant(stem, form string, threshold int) float64 {
	if threshold != 1 {
		return 0
	}
	return map[string]map[string]float64{
		"decrypt_us": wantDecryptMicroseconds, "decrypt_bytes": wantDecryptBytes, "masks_us": wantMaskMicroseconds, "masks_bytes": wantMaskBytes,
	}[stem][form]
}

// Thresholds returns the thresholds to measure a set with: 1, and larger ones for the default set.
// If the number of parties is given, it leaves out thresholds that need more.
func (o *Options) Thresholds(set *lwe.Set) (list []int) {
	for _, t := range []int{1, 3, 6} {
		if (t == 1 || set.Name == lwe.Default) && (o.Parties == 0 || 2*t+1 <= o.Parties) {
			list = append(list, t)
		}
	}
	return list
}

// Holders returns the number of parties that hold a key with the threshold.
func (o *Options) Holders(threshold int) int { return max(2*threshold+1, o.Parties) }

// ThresholdSlug returns the suffix of the names of a set's results: the set, and the number of
// holders if it is given.
func (o *Options) ThresholdSlug(set *lwe.Set) string { return slug(set.Name) + o.holdersSuffix() }

func (o *Options) holdersSuffix() string {
	if o.Parties == 0 {
		return ""
	}
	return fmt.Sprintf("_n%d", o.Parties)
}

// ThresholdMessages returns the number of messages of a batch: 20,000, or fewer if a row has less
// than a second.
func (o *Options) ThresholdMessages(threshold int) int {
	return max(64, int(min(1, o.Duration.Seconds())*20000)/threshold)
}

// ThresholdOperations lists the measurements of the protocols of threshold decryption without
// services: all parties of a quorum run in turn on one thread.
func (o *Options) ThresholdOperations() (rows []Row) {
	for _, set := range o.Threshold {
		section := len(rows)
		for _, t := range o.Thresholds(set) {
			for _, form := range ThresholdForms {
				rows = append(rows, o.quorum(set, t, form))
			}
		}
		for i := range rows[section:] {
			rows[section+i].Section = "Threshold operations with " + set.Name
		}
	}
	return rows
}

// quorum measures making masks of a form, and decrypting with them.
func (o *Options) quorum(set *lwe.Set, threshold int, form string) Row {
	count := o.ThresholdMessages(threshold)
	results := func(made, decrypted float64) []Result {
		one := func(stem, what string, v float64) Result {
			return Result{
				Name: fmt.Sprintf("threshold_engine_%s_%s_t%d_%s", stem, form, threshold, slug(set.Name)), Unit: "us", Value: v,
				What: fmt.Sprintf("CPU time of a party for %s, %s form, t = %d, %d at a time", what, form, threshold, count),
			}.Wanted(ThresholdWant(stem+"_us", form, threshold))
		}
		return []Result{one("masks", "a mask", made), one("decrypt", "a ciphertext", decrypted)}
	}
	var names []string
	for _, r := range results(0, 0) {
		names = append(names, r.Name)
	}
	return Row{Names: names, Run: func(ctx context.Context) ([]Result, error) {
		made, decrypted, err := quorumSeconds(ctx, set, threshold, form, count, o.ThresholdRuns())
		return results(1e6*made, 1e6*decrypted), err
	}}
}

// quorumSeconds measures making masks of a form and decrypting with them: the CPU-seconds of a
// party of the quorum for one of count, the medians of some runs. All parties run in turn on one
// thread.
func quorumSeconds(ctx context.Context, set *lwe.Set, threshold int, form string, count, runs int) (mask, opening float64, err error) {
	s, err := lwe.New(set)
	if err != nil {
		return 0, 0, err
	}
	p, err := decrypt.ParamsOf(s, threshold, form == "paper")
	if err != nil {
		return 0, 0, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	q := &quorum{Params: p, random: rand.New(rand.NewPCG(1, uint64(threshold))), count: count}
	var times [2][]float64
	for range runs {
		w := [2]stopwatch{}
		batches, err := q.masks(ctx, &w[0])
		if err == nil {
			err = q.decrypt(ctx, batches, &w[1])
		}
		if err != nil {
			return 0, 0, err
		}
		for i := range times {
			times[i] = append(times[i], max(w[i].steps+w[i].frames, 1e-7)/float64(count*p.Parties))
		}
	}
	return Median(times[0]), Median(times[1]), nil
}

// ThresholdRuns is how often something is measured, of which the result is the median.
func (o *Options) ThresholdRuns() int { return max(1, min(5, int(5*o.Duration.Seconds()))) }

// quorum decrypts random values with random shares: the cost does not depend on either.
type quorum struct {
	decrypt.Params
	random *rand.Rand
	count  int
}

// masks makes records, and as many more as parties open to check them.
func (q *quorum) masks(ctx context.Context, w *stopwatch) ([]*masks.Batch, error) {
	return inStep(ctx, q.Parties, "masks", w, func(s round.Session) (round.Transition[*masks.Batch], error) {
		return masks.Start(masks.Config{
			Session: s, Step: "masks", Kind: q.Kind, Count: q.count, Sacrifice: 128,
			Source: sample.NewSource(seed).Sub("party", uint64(s.Self)), Workers: 1,
		})
	})
}

func (q *quorum) decrypt(ctx context.Context, batches []*masks.Batch, w *stopwatch) error {
	some := ciphertexts{count: q.count}
	for range min(q.count, 1024) { // 16 MB: they come out of no cache of a core
		some.a, some.b = append(some.a, q.residues(q.Dimension)), append(some.b, q.residues(1)[0])
	}
	_, err := inStep(ctx, q.Parties, "decrypt", w, func(s round.Session) (round.Transition[*decrypt.Result], error) {
		return decrypt.Start(decrypt.Config{
			Session: s, Step: "decrypt", Params: q.Params, Ciphertexts: some, Secret: q.residues(q.Dimension), Masks: batches[s.Self],
			Recipient: decrypt.Outside, Workers: 1,
		})
	})
	return err
}

func (q *quorum) residues(n int) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = q.random.Uint64N(q.Modulus)
	}
	return v
}

// ciphertexts are some, over and over.
type ciphertexts struct {
	a     [][]uint64
	b     []uint64
	count int
}

func (c ciphertexts) Len() int                    { return c.count }
func (c ciphertexts) At(i int) ([]uint64, uint64) { return c.a[i%len(c.a)], c.b[i%len(c.b)] }

// inStep runs all parties of a protocol to their results.
func inStep[R any](ctx context.Context, parties int, name string, w *stopwatch, start func(round.Session) (round.Transition[R], error)) ([]R, error) {
	machines := make([]*round.Machine[R], parties)
	for i := range machines {
		s := round.Session{ID: round.Hash("lodge bench " + name), Self: round.Party(i), Parties: parties, Secrets: new(round.Secrets)}
		defer s.Secrets.Wipe()
		t, err := start(s)
		if err != nil {
			return nil, err
		}
		if machines[i], err = round.NewMachine(s, t); err != nil {
			return nil, err
		}
	}
	runtime.GC() // the garbage of earlier measurements
	return lockstep(ctx, machines, w)
}
