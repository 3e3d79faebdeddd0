package vault

import (
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func TestBurn(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 5, 5)
	reserve(t, v, "r", in(0, 0, 2))
	_, err := fetch(v, "r", "alice")
	must(t, err)
	if n, err := v.BurnMACKey("mac-1", "check failed"); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := v.BurnMACKey("mac-1", "again"); err != nil || n != 0 {
		t.Fatalf("%d, %v", n, err)
	}
	_, err = fetch(v, "r", "alice") // not even again
	refused(t, err, vaulterr.ErrErased)
	_, err = v.OpenMACKey("mac-1")
	if refused(t, err, vaulterr.ErrErased); !strings.Contains(err.Error(), "is burnt") {
		t.Errorf("%v does not say why the MAC key is erased", err)
	}
	_, err = v.Reserve(reservation(v, "s", in(1, 0, 1)))
	refused(t, err, vaulterr.ErrErased)
	if k, err := v.MACKey("mac-1"); err != nil || k.Reason != "check failed" {
		t.Errorf("%+v, %v", k, err)
	}
	if n := objects(t, v); n != 2 {
		t.Fatalf("%d objects left", n)
	}
	_, err = v.BurnMACKey("none", "")
	refused(t, err, vaulterr.ErrNotFound)
}
