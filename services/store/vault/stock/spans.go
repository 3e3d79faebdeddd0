package stock

import (
	"github.com/lodge-mpc/lodge/services/store/spans"
)

// Span is a run of a batch's tuples, and Spans is a set of runs.
type (
	Span  = spans.Span
	Spans = spans.Set
)
