package stock

import (
	"errors"
	"slices"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// awayError holds why parties did not respond to a poll: a reason at the index of each unreachable
// party, and nil at the others.
type awayError []error

func (e awayError) Error() string { return errors.Join(e...).Error() }

// Unwrap returns the reasons.
func (e awayError) Unwrap() []error {
	return slices.DeleteFunc(slices.Clone(e), func(err error) bool { return err == nil })
}

// or returns the error, or nil if all parties responded.
func (e awayError) or() error {
	if errors.Join(e...) == nil {
		return nil
	}
	return e
}

// awayFor returns the part of an error that makes the stock of a class unknown: stock of masks
// depends only on its quorum.
func awayFor(err error, c *tuplesv1.Class) error {
	var away awayError
	if !masks(c) || !errors.As(err, &away) {
		return err
	}
	theirs := make(awayError, len(away))
	for _, p := range c.GetQuorum() {
		if int(p) < len(away) {
			theirs[p] = away[p]
		}
	}
	return theirs.or()
}
