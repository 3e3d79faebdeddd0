package vault

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// owners are parties with separate stores, each known by its signing key in a roster.
type owners struct {
	t      *testing.T
	key    *seal.Key
	disks  map[string]*disk
	vaults map[string]*Vault
	roster []string        // keys, of the form NAME or NAME-NUMBER
	names  map[string]byte // of the rosters that there were
}

func newOwners(t *testing.T, names ...string) *owners {
	o := &owners{t: t, key: &seal.Key{}, disks: map[string]*disk{}, names: map[string]byte{}}
	for _, n := range names {
		o.disks[n] = newDisk()
	}
	return o
}

func owner(key string) string { return key[:1] }

// start has all parties of a roster start with it. Epochs under which they work are of no matter
// here.
func (o *owners) start(keys ...string) {
	o.t.Helper()
	all := strings.Join(keys, " ")
	if o.names[all] == 0 {
		o.names[all] = byte(len(o.names) + 1)
	}
	o.roster, o.vaults = keys, map[string]*Vault{}
	for _, k := range keys {
		v := o.disks[owner(k)].open(o.t, o.key)
		must(o.t, v.Pin(rosterOf(o.names[all], keys...)))
		o.vaults[owner(k)] = v
	}
}

// hello is the version that a party tells a peer when they start, and whether the peer accepts it.
func (o *owners) hello(party, peer int) bool {
	o.t.Helper()
	v, p := o.vaults[owner(o.roster[party])], o.vaults[owner(o.roster[peer])]
	now, err := v.Version(peer)
	must(o.t, err)
	now.Generation = now.First
	if _, err = p.Acknowledge(party, now); errors.Is(err, vaulterr.ErrRolledBack) {
		return false
	}
	must(o.t, err)
	must(o.t, v.AcknowledgedBy(peer))
	now, err = v.Version(peer)
	must(o.t, err)
	if !p.Heard(party, now) {
		o.t.Errorf("party %d has not heard of party %d, which it has acknowledged", peer, party)
	}
	must(o.t, p.RememberPeers())
	return true
}

// meet has everybody say hello to everybody, again where it was not taken at first, and gives who
// is refused by whom.
func (o *owners) meet() (refused []string) {
	o.t.Helper()
	for range 3 {
		refused = nil
		for i, a := range o.roster {
			for j, b := range o.roster {
				if i != j && !o.hello(i, j) {
					refused = append(refused, owner(a)+" by "+owner(b))
				}
			}
		}
	}
	slices.Sort(refused)
	return refused
}

// grow has the stores advance.
func (o *owners) grow() {
	o.t.Helper()
	for _, v := range o.vaults {
		for range 10 {
			must(o.t, v.Advance(func(tx store.Tx) error {
				id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
				must(o.t, err)
				return seal.Put(v.Store, tx, seal.IdentityKey, id)
			}))
		}
	}
}

// settle has everybody meet, with nobody refused, and work.
func (o *owners) settle(keys ...string) {
	o.t.Helper()
	o.start(keys...)
	if r := o.meet(); len(r) > 0 {
		o.t.Fatalf("roster %v: %v", keys, r)
	}
	o.grow()
	if r := o.meet(); len(r) > 0 {
		o.t.Fatalf("roster %v, later: %v", keys, r)
	}
}

// However the roster changes, whoever has kept its store is taken by everybody, also at once after
// the change; and whoever has put an older copy back is refused.
func TestStoresAreKnownInEveryRoster(t *testing.T) {
	t.Parallel()
	first := []string{"a", "b", "c"}
	for name, rosters := range map[string][][]string{
		"a new key":                            {{"a-2", "b", "c"}},
		"a new key and back":                   {{"a-2", "b", "c"}, first},
		"a new key and back, twice":            {{"a-2", "b", "c"}, first, {"a-2", "b", "c"}, first},
		"three keys and back":                  {{"a-2", "b", "c"}, {"a-3", "b", "c"}, {"a-4", "b", "c"}, {"a-2", "b", "c"}, first},
		"another order":                        {{"c", "a", "b"}, first},
		"another order and a new key":          {{"c", "b", "a-2"}},
		"another order, a new key and back":    {{"c", "b", "a-2"}, first},
		"another order and new keys":           {{"b-2", "c-2", "a-2"}},
		"another order, new keys and back":     {{"b-2", "c-2", "a-2"}, first, {"b-2", "a-2", "c-2"}},
		"a party leaves":                       {{"a", "c"}},
		"a party leaves and comes back":        {{"b", "c"}, first},
		"it comes back with a new key":         {{"b", "c"}, {"c", "a-2", "b"}},
		"it comes back when others have moved": {{"b", "c"}, {"b-2", "c"}, {"c", "b-2", "a"}, first},
		"another in its place, and back":       {{"d", "b", "c"}, first, {"d", "b", "c"}},
		"another with it, and new keys":        {{"d", "b-2", "c-2"}, {"c-2", "a", "d-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOwners(t, "a", "b", "c", "d")
			o.settle(first...)
			for _, r := range rosters {
				o.settle(r...)
			}
			last := rosters[len(rosters)-1]
			for _, victim := range last {
				o.rolledBack(victim, last)
			}
			for n := range rosters {
				o.putBack(t, first, rosters, n)
			}
		})
	}
}

// rolledBack puts a party's store back to before it worked, and starts everybody again.
func (o *owners) rolledBack(victim string, roster []string) {
	o.t.Helper()
	p := o.copyOf()
	p.start(roster...)
	if r := p.meet(); len(r) > 0 {
		p.t.Errorf("roster %v, started again: %v", roster, r)
	}
	old := p.disks[owner(victim)].copyOf()
	p.grow()
	p.meet()
	p.disks[owner(victim)] = old
	p.mustRefuse(victim, roster)
}

// putBack repeats the rosters, copies the stores in one of the rosters, and restores each copy in
// the last roster, and in another order of that roster.
func (o *owners) putBack(t *testing.T, first []string, rosters [][]string, at int) {
	t.Helper()
	o = newOwners(t, "a", "b", "c", "d")
	o.settle(first...)
	old := map[string]*disk{}
	for n, r := range rosters {
		o.start(r...)
		if refused := o.meet(); len(refused) > 0 {
			t.Fatalf("roster %v: %v", r, refused)
		}
		if n == at {
			for _, k := range r {
				old[owner(k)] = o.disks[owner(k)].copyOf()
			}
		}
		o.grow()
		o.meet()
	}
	last := rosters[len(rosters)-1]
	for victim := range old {
		i := slices.IndexFunc(last, func(k string) bool { return owner(k) == victim })
		if i < 0 {
			continue
		}
		p := o.copyOf()
		p.disks[victim] = old[victim].copyOf()
		p.mustRefuse(last[i], last)
		p = o.copyOf() // and with the change to another roster
		p.disks[victim] = old[victim].copyOf()
		p.mustRefuse(last[i], append(slices.Clone(last[1:]), last[0]))
		for _, r := range append(slices.Clone(rosters), first, last) { // nor is it ever forgotten
			p.start(r...)
			p.grow()
			refused := p.meet()
			for _, k := range r {
				knows := slices.ContainsFunc(last, func(l string) bool { return owner(l) == owner(k) })
				there := slices.ContainsFunc(r, func(l string) bool { return owner(l) == victim })
				if knows && there && owner(k) != victim && !slices.Contains(refused, victim+" by "+owner(k)) {
					t.Errorf("copy of %v, then roster %v: %s takes %s again: %v", rosters[at], r, k, victim, refused)
				}
			}
		}
	}
}

// mustRefuse: everybody else refuses the victim, however often it starts and works, and nobody else
// is refused by another.
func (o *owners) mustRefuse(victim string, roster []string) {
	o.t.Helper()
	for try := range 3 {
		o.start(roster...)
		o.grow()
		refused := o.meet()
		for _, k := range roster {
			by := owner(victim) + " by " + owner(k)
			if owner(k) != owner(victim) && !slices.Contains(refused, by) {
				o.t.Errorf("roster %v, try %d: %s's store was put back, and %s takes it: %v", roster, try, victim, k, refused)
			}
		}
		for _, r := range refused {
			if r[:1] != owner(victim) {
				o.t.Errorf("roster %v, try %d: %s", roster, try, r)
			}
		}
	}
}

func (o *owners) copyOf() *owners {
	c := &owners{t: o.t, key: o.key, disks: map[string]*disk{}, roster: o.roster, names: maps.Clone(o.names)}
	for n, d := range o.disks {
		c.disks[n] = d.copyOf()
	}
	return c
}

// A party that claims another's store is rejected, and causes no rejection of others, whether it is
// present or has left, and also if the owner has not told about the store before.
func TestNobodySpeaksForTheStoreOfAnother(t *testing.T) {
	t.Parallel()
	o := newOwners(t, "a", "b", "c", "d")
	claim := func(by, of, at string) error {
		t.Helper()
		now, err := o.vaults[of].Version(0)
		must(t, err)
		now.First, now.Generation = 1<<60, 1<<60
		i := slices.IndexFunc(o.roster, func(k string) bool { return owner(k) == by })
		_, err = o.vaults[at].Acknowledge(i, now)
		return err
	}
	o.start("a", "b", "d")
	must(t, claim("d", "a", "b")) // before b has heard of a's store
	now, err := o.vaults["a"].Version(1)
	must(t, err)
	_, err = o.vaults["b"].Acknowledge(0, now)
	refused(t, err, vaulterr.ErrState) // two parties have one store
	o.settle("a", "b")                 // d is taken out of the roster
	o.settle("b", "a")

	o = newOwners(t, "a", "b", "c")
	o.settle("a", "b", "c")
	refused(t, claim("c", "a", "b"), vaulterr.ErrState)
	o.settle("b", "c")
	o.start("b", "c")
	o.vaults["a"] = o.disks["a"].open(t, o.key)
	refused(t, claim("c", "a", "b"), vaulterr.ErrState)
	o.settle("a-2", "b")
	o.settle("a-2", "b", "c")
	refused(t, claim("c", "a", "b"), vaulterr.ErrState)
	o.settle("c", "b", "a")
}

// Where parties that have left stood with a store is nothing to the store that is restored from its
// backup: its generations are others.
func TestRestoreForgetsWhoKnewTheStore(t *testing.T) {
	t.Parallel()
	o := newOwners(t, "a", "b")
	o.settle("a", "b")
	o.settle("a-2", "b")
	key := newKey(t)
	must(t, o.vaults["b"].RotateKey(o.key, key))
	d := newDisk()
	_, err := Restore(&memory{disk: d}, bytes.NewReader(backupOf(t, o.vaults["b"])), key, upkeep.RestoreOptions{})
	must(t, err)
	v := d.open(t, key)
	must(t, v.Backend.View(func(tx store.Tx) error {
		r, err := seal.Get[peers.RosterRecord](v.Store, tx, peers.RosterKey)
		must(t, err)
		for name, x := range r.Away {
			if x.Acknowledged != nil || x.Peer == nil {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if len(r.Away) == 0 {
			t.Error("nobody is away")
		}
		return nil
	}))
}

// A store that was replaced stays so when its party replaces its key, too, whichever of its keys it
// comes back under.
func TestAReplacedStoreStaysSo(t *testing.T) {
	t.Parallel()
	says := func(o *owners, d *disk, want bool, roster ...string) {
		t.Helper()
		o.disks["a"] = d.copyOf()
		o.start(roster...)
		i := slices.IndexFunc(roster, func(k string) bool { return owner(k) == "a" })
		if took := o.hello(i, slices.Index(roster, "b")); took != want {
			t.Errorf("roster %v: taken: %v, want %v", roster, took, want)
		}
	}
	o := newOwners(t, "a", "b")
	o.settle("a", "b")
	first := o.disks["a"]
	o.disks["a"] = newDisk()
	o.settle("a", "b")
	second := o.disks["a"]
	says(o.copyOf(), first, false, "a-2", "b")
	o.disks["a"] = newDisk()
	o.settle("a-2", "b")
	says(o.copyOf(), second, false, "a-2", "b")
	says(o, first, false, "a-2", "b")

	o = newOwners(t, "a", "b", "c")
	o.settle("a", "b", "c")
	first = o.disks["a"]
	o.settle("b", "c")
	o.disks["a"] = newDisk()
	o.settle("b", "c", "a-2") // not in the place of a
	second = o.disks["a"]
	says(o, first, true, "b", "c", "a-2")
	says(o, second, false, "b", "c", "a-2")
}

// A party that has replaced its key, or has its old one back, takes a peer's store before it has
// said which its own is.
func TestAPeerIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	o := newOwners(t, "a", "b")
	o.settle("a", "b")
	for _, key := range []string{"a-2", "a", "a-2"} {
		o.start(key, "b")
		if !o.hello(1, 0) {
			t.Errorf("%s does not know b", key)
		}
		o.settle(key, "b")
	}
}

// An acknowledgement of an old copy by one party does not matter to another party that has seen a
// later version.
func TestAnotherPartysWordIsItsOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		first, seen, putBack  string // rosters: of the copy, of when the witness sees the store further, of when it is put back
		last, witness, unwary string
	}{
		{"it takes the place of who leaves", "abc", "abc", "abc", "cb", "c", "a"},
		{"it takes the place of who moves", "ab", "abd", "ab", "dba", "d", "a"},
		{"it returns after a party that never said which store it has", "ab", "ab", "db", "ab", "a", "d"},
	} {
		o := newOwners(t, "a", "b", "c", "d")
		roster := func(names string) { o.start(strings.Split(names, "")...) }
		hello := func(from, to string) bool { return o.hello(slices.Index(o.roster, from), slices.Index(o.roster, to)) }
		roster(c.first)
		hello("a", "b")
		hello("b", "a")
		old := o.disks["b"].copyOf()
		roster(c.seen)
		o.grow()
		if !hello("b", c.witness) {
			t.Fatalf("%s: b is not known", c.name)
		}
		o.disks["b"] = old
		for range 3 {
			roster(c.putBack)
			if !hello("b", c.unwary) {
				t.Fatalf("%s: %s refuses b", c.name, c.unwary)
			}
			o.grow()
		}
		roster(c.last)
		if hello("b", c.witness) {
			t.Errorf("%s: the store of b was put back, and %s takes it", c.name, c.witness)
		}
	}
}

// A peer's standing under another key counts if it belongs to this store and is further than the
// known one.
func TestWhereAPeerStood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now, then *seal.Acknowledged
		first     uint64
		changed   bool
	}{
		{nil, nil, 3, false},
		{nil, &seal.Acknowledged{First: 10}, 10, true},
		{nil, &seal.Acknowledged{First: 11}, 3, false}, // of the store that this one is restored from
		{&seal.Acknowledged{First: 5}, &seal.Acknowledged{First: 7}, 7, true},
		{&seal.Acknowledged{First: 5}, &seal.Acknowledged{First: 5}, 5, false},
		{&seal.Acknowledged{First: 5, Since: true}, &seal.Acknowledged{First: 7}, 5, false}, // it has acknowledged the version it was told
	} {
		id := &seal.Identity{Generation: 10, Floor: 3}
		if c.now != nil {
			id.Peers = map[int]*seal.Acknowledged{1: c.now}
		}
		if changed := id.StandsWith(1, c.then); changed != c.changed || id.First(1) != c.first {
			t.Errorf("%+v, then %+v: %d, %v", c.now, c.then, id.First(1), changed)
		}
	}
}
