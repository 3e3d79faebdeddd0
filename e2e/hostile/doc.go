// Package hostile attacks real lodge processes from outside, in a bounded form of attacks by
// reviewers.
package hostile
