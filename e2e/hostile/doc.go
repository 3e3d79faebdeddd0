// Package hostile attacks real lodge processes from outside, in a bounded form of what reviewers did.
package hostile
