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

// SeedOf sees that a roster has the seed of a toss, and names the parties that took no part.
func SeedOf(t *toss.Transcript, path string) (joined []string, err error) {
	roster, err := config.LoadRoster(filepath.Clean(path))
	if err != nil {
		return nil, Misconfigured(err)
	}
	if want := ContextOf(t); roster.Multikey == nil || *roster.Multikey != *want {
		return nil, rpc.Errorf(rpc.PinMismatch, "ask whoever made the roster where its seed is from, and make keys under none that you have not checked",
			"%s does not have the set %s and the seed %s that were tossed", path, want.Set, want.Seed)
	}
	return t.NotFounders(partiesOf(roster)), nil
}

// AddToss writes what was tossed into a roster. A party that took no part knows nothing of where the seed is from, so it is
// refused; it can take a roster that it has seen and checked.
func AddToss(r *config.Roster, path string) error {
	t, err := ReadTranscript(path)
	if err != nil {
		return err
	}
	if joined := t.NotFounders(partiesOf(r)); len(joined) > 0 {
		return Invalid("toss with all parties, or write what `lodge mk seed verify` shows into the roster if they trust one of the founders",
			"these took no part in the toss: %s", strings.Join(joined, ", "))
	}
	r.Multikey = ContextOf(t)
	return nil
}

// partiesOf a roster, which has been validated.
func partiesOf(r *config.Roster) (parties []toss.Founder) {
	keys := r.SigningKeys()
	for i, p := range r.Parties {
		parties = append(parties, toss.Founder{Name: p.Name, Key: keys[i]})
	}
	return parties
}

// ContextOf is what the roster has of a toss.
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

// ReadToss reads a file of a toss.
func ReadToss[T any](path string, parse func([]byte) (T, error)) (m T, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, rpc.Errorf(rpc.NotFound, "name the files that founders have handed out", "%v", err)
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

// Tossed says what to do about an error of a toss.
func Tossed(err error) error {
	var f *toss.Fault
	switch {
	case errors.Is(err, toss.ErrMissing):
		return rpc.Errorf(rpc.NotFound, "ask them for their files; if they give none, toss without them, with another label", "%v", err)
	case errors.As(err, &f):
		return rpc.Errorf(rpc.Conflict, "keep the files, which prove it; toss without them, with another label", "%v", err)
	case errors.Is(err, toss.ErrSignature), errors.Is(err, toss.ErrList):
		return Invalid("ask the founder for the file again: somebody has changed it, or made it", "%v", err)
	case errors.Is(err, toss.ErrOwn):
		return rpc.Errorf(rpc.Conflict, "name the file that was made with what is kept; if you did not make the other one, your signing key is known", "%v", err)
	case errors.Is(err, toss.ErrFounder):
		return Invalid("name this founder's entry too, and the directory that `lodge enrol` made for it", "%v", err)
	case errors.Is(err, toss.ErrOther):
		return Invalid("name files of one toss, all of the same label, set and founders", "%v", err)
	case errors.Is(err, toss.ErrCeremony), errors.Is(err, toss.ErrFile):
		return Invalid("docs/guides/multikey.md says how founders toss", "%v", err)
	}
	return err
}
