package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey/toss"
)

// SeedOf checks that the roster contains the seed of the toss, and returns the names of the parties
// that took no part in it.
func SeedOf(t *toss.Transcript, path string) (joined []string, err error) {
	roster, err := config.LoadRoster(filepath.Clean(path))
	if err != nil {
		return nil, Misconfigured(err)
	}
	if want := ContextOf(t); roster.Multikey == nil || *roster.Multikey != *want {
		return nil, rpc.Errorf(rpc.PinMismatch, "ask the author of the roster about the origin of its seed, and make no keys under a seed that you have not verified",
			"%s does not have the set %s and the seed %s that were tossed", path, want.Set, want.Seed)
	}
	return t.NotFounders(partiesOf(roster)), nil
}

// AddToss writes the set and the seed of a toss into the roster. It rejects the roster if a party
// took no part in the toss: that party cannot know the origin of the seed. Such a party may still
// accept a roster that it has checked itself.
func AddToss(r *config.Roster, path string) error {
	t, err := ReadTranscript(path)
	if err != nil {
		return err
	}
	if joined := t.NotFounders(partiesOf(r)); len(joined) > 0 {
		return Invalid("toss with all parties, or copy the output of `lodge mk seed verify` into the roster if the other parties trust one of the founders",
			"these took no part in the toss: %s", strings.Join(joined, ", "))
	}
	r.Multikey = ContextOf(t)
	return nil
}

// partiesOf returns the parties of a roster, which must have been validated.
func partiesOf(r *config.Roster) (parties []toss.Founder) {
	keys := r.SigningKeys()
	for i, p := range r.Parties {
		parties = append(parties, toss.Founder{Name: p.Name, Key: keys[i]})
	}
	return parties
}

// ContextOf returns the roster's entry for a toss.
func ContextOf(t *toss.Transcript) *config.Multikey {
	seed := t.Seed()
	return &config.Multikey{Set: t.Set, Seed: hex.EncodeToString(seed[:])}
}

func ReadTranscript(path string) (*toss.Transcript, error) {
	t, err := ReadToss(path, toss.ParseTranscript)
	if err != nil {
		return nil, err
	}
	if err := t.Verify(); err != nil {
		return nil, Tossed(err)
	}
	return t, nil
}

// ReadToss reads and parses a file of a toss.
func ReadToss[T any](path string, parse func([]byte) (T, error)) (m T, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, rpc.Errorf(rpc.NotFound, "name the files that the founders have sent", "%v", err)
	}
	if err != nil {
		return m, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, toss.MaxSize+1))
	if err != nil {
		return m, err
	}
	if m, err = parse(b); err != nil {
		return m, Tossed(fmt.Errorf("%s: %w", path, err))
	}
	return m, nil
}

// Tossed adds the next step to an error of a toss.
func Tossed(err error) error {
	var f *toss.Fault
	switch {
	case errors.Is(err, toss.ErrMissing):
		return rpc.Errorf(rpc.NotFound, "ask these founders for their files; if they refuse, toss without them, under another label", "%v", err)
	case errors.As(err, &f):
		return rpc.Errorf(rpc.Conflict, "keep the files as evidence, and toss without this founder, under another label", "%v", err)
	case errors.Is(err, toss.ErrSignature), errors.Is(err, toss.ErrList):
		return Invalid("ask the founder for the file again: it was modified or forged", "%v", err)
	case errors.Is(err, toss.ErrOwn):
		return rpc.Errorf(rpc.Conflict, "name the file that was made with the stored secret; if you did not make the other file, your signing key is compromised", "%v", err)
	case errors.Is(err, toss.ErrFounder):
		return Invalid("also name this founder's entry, and the directory that `lodge enrol` made for it", "%v", err)
	case errors.Is(err, toss.ErrOther):
		return Invalid("name files of one toss: same label, set and founders", "%v", err)
	case errors.Is(err, toss.ErrCeremony), errors.Is(err, toss.ErrFile):
		return Invalid("see docs/guides/multikey.md for the ceremony", "%v", err)
	}
	return err
}
