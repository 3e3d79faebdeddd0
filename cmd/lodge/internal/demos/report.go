package demos

import (
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Report is the outcome of a demonstration.
type Report interface {
	Print(w io.Writer) error // for people
	Took(total time.Duration)
	Wrong() error // an error if a result is wrong
}

func (r *TriplesReport) Took(d time.Duration)   { r.TotalSeconds = d.Seconds() }
func (r *ThresholdReport) Took(d time.Duration) { r.TotalSeconds = d.Seconds() }
func (r *CiphertextsReport) Took(time.Duration) {}
func (r *LinearReport) Took(d time.Duration)    { r.TotalSeconds = d.Seconds() }
func (r *MultikeyReport) Took(d time.Duration)  { r.TotalSeconds = d.Seconds() }

func (r *TriplesReport) Wrong() error {
	if r.Verified == r.Tuples {
		return nil
	}
	return fmt.Errorf("%w: %d of %d triples are good", cli.ErrUnverified, r.Verified, r.Tuples)
}

func (r *ThresholdReport) Wrong() error {
	return failUnless(r.Correct == 2*r.Values, "the decryption is wrong: %d of %d results are right", r.Correct, 2*r.Values)
}

func (r *CiphertextsReport) Wrong() error {
	return failUnless(r.Correct == r.Values && r.Repeated, "the decryption is wrong: %d of %d values are right", r.Correct, r.Values)
}

func (r *LinearReport) Wrong() error {
	return failUnless(r.Correct, "the results differ from those in plaintext")
}

func (r *MultikeyReport) Wrong() error {
	return failUnless(r.All.Correct && r.Others.Correct, "an auction ended differently from the one in plaintext")
}

func failUnless(correct bool, format string, args ...any) error {
	if correct {
		return nil
	}
	return rpc.Errorf(cli.CheckFailed, "", format, args...)
}
