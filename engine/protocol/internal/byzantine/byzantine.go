// Package byzantine lets tests make a party cheat from the inside: its messages, and some other
// values before it commits to them, pass through named hooks, where a test replaces them. The
// zero Hooks changes nothing, and packages outside engine/protocol can have no other Hooks.
package byzantine

import (
	"fmt"
	"slices"
	"sync"
)

// Hooks is a set of named cheats of one party.
type Hooks struct{ set *set }

type set struct {
	mu    sync.Mutex
	hooks map[string]any
	skips map[string]bool
	fired map[string]int
}

// New returns hooks that change nothing yet.
func New() Hooks {
	return Hooks{&set{hooks: map[string]any{}, skips: map[string]bool{}, fired: map[string]int{}}}
}

// On sets the cheat at the named hook. T is the type that the protocol passes to Apply there: a
// pointer, or another type that a function can change in place.
func On[T any](h Hooks, name string, cheat func(v T)) Hooks {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	h.set.hooks[name] = cheat
	return h
}

// Skip makes this party omit the named check.
func (h Hooks) Skip(check string) Hooks {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	h.set.skips[check] = true
	return h
}

// Apply runs the cheat of this name on v, and reports whether there is one. A cheat made for
// another type is a mistake in the test, and panics.
func Apply[T any](h Hooks, name string, v T) bool {
	if h.set == nil {
		return false
	}
	h.set.mu.Lock()
	f, ok := h.set.hooks[name]
	if ok {
		h.set.fired[name]++
	}
	h.set.mu.Unlock()
	if !ok {
		return false
	}
	cheat, ok := f.(func(T))
	if !ok {
		panic(fmt.Sprintf("byzantine: hook %s has a cheat of type %T, but the protocol needs %T", name, f, cheat))
	}
	cheat(v)
	return true
}

// Try runs the cheat of this name on v if there is one for this type, and reports whether it ran.
func Try[T any](h Hooks, name string, v T) bool {
	if h.set == nil {
		return false
	}
	h.set.mu.Lock()
	_, ok := h.set.hooks[name].(func(T))
	h.set.mu.Unlock()
	return ok && Apply(h, name, v)
}

// Skips reports whether this party omits the named check.
func (h Hooks) Skips(check string) bool {
	if h.set == nil {
		return false
	}
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	return h.set.skips[check]
}

// Fired returns the number of times that the cheat of this name has run, so that a test can detect
// a hook that no longer exists.
func (h Hooks) Fired(name string) int {
	if h.set == nil {
		return 0
	}
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	return h.set.fired[name]
}

// Unfired lists the names of the cheats that have not run.
func (h Hooks) Unfired() (names []string) {
	if h.set == nil {
		return nil
	}
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	for name := range h.set.hooks {
		if h.set.fired[name] == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
