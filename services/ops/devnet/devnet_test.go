package devnet_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// The processes and the clients can load the files that Write writes, and Open finds them.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net")
	c, err := devnet.Write(dir, devnet.Options{Parties: 2, Params: []string{"S14-32"}, Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.LoadCoordinator(c.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range c.Parties {
		if _, err := config.LoadParty(path); err != nil {
			t.Error(err)
		}
	}
	if len(c.Clients) != 5 {
		t.Fatalf("configurations of clients: %q", c.Clients)
	}
	for i, path := range c.Clients {
		x, err := lodge.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 && x.Party != c.Roster.Parties[i].Name || i >= 2 && x.Party != "" || x.Coordinator.Identity != f.Roster.Coordinator.Identity ||
			len(x.Parties) != 2 || x.Parties[1].Identity != c.Roster.Parties[1].Identity || x.Params != "S14-32" || x.Tenant != devnet.Tenant {
			t.Errorf("%s contains %+v", path, x)
		}
		client, err := lodge.Dial(x)
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
	again, err := devnet.Open(dir)
	if err != nil || !reflect.DeepEqual(again.Clients, c.Clients) || !reflect.DeepEqual(again.Parties, c.Parties) ||
		again.Coordinator != c.Coordinator || again.Params != "S14-32" || c.Params != "S14-32" || !reflect.DeepEqual(again.Roster.Parties, c.Roster.Parties) {
		t.Errorf("opened %+v, %v; wrote %+v", again, err, c)
	}
	if _, err := devnet.Write(dir, devnet.Options{Parties: 2}); err == nil {
		t.Error("another cluster was overwritten")
	}
}

// The files of a development cluster mark the client whose ciphertexts need no provenance, and its
// parties accept the attester's key. Other clusters have no decryption rules.
func TestDecryptRules(t *testing.T) {
	for _, dev := range []bool{true, false} {
		c, err := devnet.Write(filepath.Join(t.TempDir(), "net"), devnet.Options{Parties: 2, Params: []string{"S14-32"}, Dev: dev})
		if err != nil {
			t.Fatal(err)
		}
		key, err := c.AttesterKey()
		if (err == nil) != dev {
			t.Errorf("dev %v: %v", dev, err)
		}
		for _, file := range c.Parties {
			f, err := config.LoadParty(file)
			if err != nil {
				t.Fatal(err)
			}
			if !dev {
				if len(f.Threshold.Rules) != 0 || len(c.Clients) != 4 {
					t.Errorf("%+v, %q", f.Threshold, c.Clients)
				}
				continue
			}
			readers := f.Threshold.KeyReaders()
			if len(readers) != 1 || readers[0].Client != devnet.App || readers[0].AllowFlooding {
				t.Errorf("%+v can read the keys", readers)
			}
			r, ok := f.Threshold.Rule(devnet.Attested, 1, [32]byte{})
			a, known := f.Threshold.Attester(devnet.Attester)
			if !ok || !known || !slices.Equal(r.Provenance, []string{devnet.Attester}) || !a.Public().Equal(key.Public()) {
				t.Errorf("%+v, %+v", r, a)
			}
		}
	}
}
