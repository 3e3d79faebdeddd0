package stock

import (
	"errors"
	"slices"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// awayError says why parties could not be asked: a reason at the place of each of them, and none at those of the others.
type awayError []error

func (e awayError) Error() string { return errors.Join(e...).Error() }

// Unwrap gives the reasons.
func (e awayError) Unwrap() []error {
	return slices.DeleteFunc(slices.Clone(e), func(err error) bool { return err == nil })
}

// or is the error, or none if all parties could be asked.
func (e awayError) or() error {
	if errors.Join(e...) == nil {
		return nil
	}
	return e
}

// awayFor is what of an error keeps it unknown what there is of a class: masks are their quorum's, whoever else is away.
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
