package cli

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// OneLine makes text of another process safe to print on one line of a terminal.
func OneLine(text string) string { return terminal.OneLine(text) }

func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Time formats a time in RFC 3339. It returns "" if t is nil.
func Time(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// Each returns f of each element. The result is never nil, so that its JSON is a list.
func Each[T, R any](list []T, f func(T) R) []R {
	out := make([]R, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}
