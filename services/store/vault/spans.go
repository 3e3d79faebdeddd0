package vault

import (
	"github.com/lodge-mpc/lodge/services/store/spans"
)

// Span is a run of a batch's tuples, and Spans are some of them.
type (
	Span  = spans.Span
	Spans = spans.Set
)
