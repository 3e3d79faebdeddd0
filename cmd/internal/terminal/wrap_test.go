package terminal

import "testing"

func TestWrap(t *testing.T) {
	const text = `A paragraph that is wider than the page.

Usage:
  lodge split FILE SHARE SHARE --fraction BITS

Examples:
  lodge split vector.npy a.npy b.npy --fraction 8

Flags:
      --out string   the file that the command creates
      --unbreakable-name-of-a-flag-that-is-too-long
`
	const want = `A paragraph that is wider
than the page.

Usage:
  lodge split FILE SHARE
      SHARE --fraction BITS

Examples:
  lodge split vector.npy \
      a.npy b.npy \
      --fraction 8

Flags:
      --out string   the
                     file
                     that
                     the
                     command
                     creates
      --unbreakable-name-of-a-flag-that-is-too-long
`
	if got := Wrap(text, 28); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Wrap(want, 80); got != want {
		t.Errorf("narrow text becomes\n%s", got)
	}
}
