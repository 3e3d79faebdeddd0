package vault

import (
	"testing"
)

// The head of the audit log is remembered across restarts, and does not make a generation.
func TestAuditHead(t *testing.T) {
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	if h, err := v.AuditHead(); h != "" || err != nil {
		t.Errorf("%q, %v", h, err)
	}
	before := version(t, v).Generation
	for _, h := range []string{"one", "two", "two"} {
		must(t, v.RememberAudit(h))
	}
	must(t, v.Close())
	v = mustOpen(t, dir, k)
	defer v.Close()
	if h, err := v.AuditHead(); h != "two" || err != nil {
		t.Errorf("%q, %v", h, err)
	}
	if now := version(t, v).Generation; now != before {
		t.Errorf("generation %d, was %d", now, before)
	}
}
