package main

// vaultRosterTable has what a vault checks of rosters and of epochs that drain, and what it remembers against peers.
var vaultRosterTable = []mutation{
	// What may be done under the present roster.
	{
		Name: "roster/hash", File: "roster.go", Run: "TestStanding", Protects: "keys serve the roster that they were made under",
		Old: "case e.RosterHash == p.hash:", New: "case len(e.RosterHash) == len(p.hash):",
	},
	{
		Name: "roster/holders", File: "roster.go", Run: "TestStanding", Protects: "shares go to clients while all their holders are who they were",
		Old: "case e.Holders == p.holders:", New: "case p != nil:",
	},
	{
		Name: "roster/holders-keys", File: "roster.go", Run: "TestStanding", Protects: "holders are their signing keys, in order",
		Old: "h.Write(sum[:])", New: "_ = sum",
	},
	{
		Name: "roster/works", File: "roster.go", Run: "TestStanding", Protects: "nothing is made or decrypted with keys of another roster",
		Old: "if v.Standing(e) != SameRoster {", New: "if false {",
	},
	{
		Name: "roster/gives", File: "roster.go", Run: "TestStanding", Protects: "shares of other parties go to nobody",
		Old: "if v.Standing(e) == OtherParties {", New: "if v.Standing(e) > OtherParties {",
	},
	{
		Name: "roster/spend", File: "epoch.go", Run: "TestStanding", Protects: "no session decrypts under keys of another roster",
		Old: "if err := v.works(e); err != nil {", New: "if err := v.works(e); false {",
	},
	{
		Name: "roster/secret", File: "epoch.go", Run: "TestStanding", Protects: "a share of a key is read under its own roster",
		Old: "err = v.works(&e)", New: "_ = v.works(&e)",
	},
	{
		Name: "roster/batch", File: "batch.go", Run: "TestStanding", Protects: "no batch comes to lie under keys of another roster",
		Old: "if err := v.works(e); err != nil {", New: "if err := v.works(e); false {",
	},
	{
		Name: "roster/ledger", File: "ledger.go", Run: "TestStanding", Protects: "no client's ciphertext is decrypted under keys of another roster",
		Old: "return epoch, v.works(epoch)", New: "return epoch, nil",
	},
	{
		Name: "roster/reserve", File: "reservation.go", Run: "TestStanding", Protects: "tuples of other parties are not reserved",
		Old: "err = v.gives(tx, k.Epoch)", New: "_ = v.gives(tx, k.Epoch)",
	},
	{
		Name: "roster/deliver", File: "deliver.go", Run: "TestStanding", Protects: "tuples of other parties are not delivered",
		Old: "err = v.gives(held.tx, k.Epoch)", New: "_ = v.gives",
	},
	{
		Name: "roster/mac-key", File: "mackey.go", Run: "TestStanding", Protects: "a MAC key of other parties is not read",
		Old: "err = v.store.View(func(tx store.Tx) error { return v.gives(tx, k.Epoch) })", New: "_ = v.gives",
	},
	{
		Name: "roster/made-under", File: "epoch.go", Run: "TestHolders", Protects: "the holders of keys are those of the roster that they were made under",
		Old: "if p := v.roster.Load(); p != nil && e.RosterHash == p.hash && ", New: "if p := v.roster.Load(); p != nil && ",
	},
	{
		Name: "roster/holders-of-before", File: "roster.go", Run: "TestHolders", Protects: "the holders of keys are those of the roster that they were made under",
		Old: " || e.RosterHash != p.hash || ", New: " || ",
	},
	{
		Name: "roster/holders-stay", File: "roster.go", Run: "TestHolders|TestStanding", Protects: "the holders of keys do not change",
		Old: "if e.Holders != [32]byte{} || ", New: "if ",
		Redundant: "the same roster has the same holders",
	},
	// What is remembered of peers.
	{
		Name: "pin/rearranges", File: "roster.go", Run: "TestPeers", Protects: "what is remembered of a peer follows its key",
		Old: "if err := v.rearrange(tx, old, r.Keys); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "pin/acknowledged", File: "roster.go", Run: "TestPeers", Protects: "nobody has acknowledged for others",
		Old: "\tid.Peers = nil\n", New: "",
	},
	{
		Name: "pin/restored", File: "restore.go", Run: "TestRestoreForgets", Protects: "who has left has not acknowledged a restored store",
		Old: "if err := r.v.forgetStanding(tx); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "pin/forgets-numbers", File: "roster.go", Run: "TestPeers|TestNobody", Protects: "a party has nothing of whom it has replaced",
		Old: "if err := tx.Delete(peerKey(i)); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "pin/away", File: "roster.go", Run: "TestPeers|TestStoresAre", Protects: "who comes back is remembered",
		Old: "old.Away[hex.EncodeToString(k)] = &awayPeer{p, id.Peers[i]}", New: "_, _ = p, k",
	},
	{
		Name: "pin/new-key", File: "roster.go", Run: "TestAReplaced|TestAPeer", Protects: "a party that has replaced its key has its store yet",
		Old: "if y := gone[hex.EncodeToString(old.Keys[i])]; y != nil {", New: "if y := gone[name]; y != nil {",
	},
	{
		Name: "pin/new-key-store", File: "roster.go", Run: "TestAReplaced", Protects: "a party that has replaced its key has its store yet",
		Old: "if y.Peer != nil {\n\t\t\t\t\tx.Peer", New: "if false {\n\t\t\t\t\tx.Peer",
	},
	{
		Name: "pin/new-key-standing", File: "roster.go", Run: "TestAPeer", Protects: "a party that has replaced its key knows this store yet",
		Old: "x = &awayPeer{Acknowledged: y.Acknowledged}", New: "x = &awayPeer{}",
	},
	{
		Name: "pin/new-key-guessed", File: "roster.go", Run: "TestStoresAre", Protects: "what is guessed of a store is not held against another",
		Old: "Former: y.Peer.Former, Guessed: true}", New: "Former: y.Peer.Former}",
	},
	{
		Name: "pin/new-key-former", File: "roster.go", Run: "TestAReplaced", Protects: "a store that was replaced does not come back under another key",
		Old: "Version: y.Peer.Version, Former: y.Peer.Former, Guessed", New: "Version: y.Peer.Version, Guessed",
	},
	{
		Name: "pin/new-key-of-who-moved", File: "roster.go", Run: "TestAnotherParty", Protects: "a party that has moved has nothing of one that has left",
		Old: " && !hasKey(old.Keys, k) &&", New: " &&",
	},
	{
		Name: "pin/new-key-of-who-left", File: "roster.go", Run: "TestAnotherParty", Protects: "a new party has nothing of one that has another number now",
		Old: " && !hasKey(keys, old.Keys[i]) {", New: " {",
	},
	{
		Name: "pin/store-of-now", File: "roster.go", Run: "TestWhere", Protects: "a peer has acknowledged this store, and not one before a restore",
		Old: "if a == nil || a.First > id.Generation || ", New: "if a == nil || ",
	},
	{
		Name: "pin/standing-since", File: "roster.go", Run: "TestWhere", Protects: "where a peer stood before is not where it stands",
		Old: "now.Since || now.First >= a.First", New: "now.First >= a.First",
	},
	{
		Name: "pin/standing-first", File: "roster.go", Run: "TestWhere", Protects: "where a peer stood before is not where it stands",
		Old: "now.Since || now.First >= a.First", New: "now.Since",
	},
	{
		Name: "pin/recall", File: "roster.go", Run: "TestAPeer", Protects: "a store is known by every key that its party had",
		Old: "if _, err := v.recall(tx, id, old, i, name, x.Peer.ID); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "pin/recall-former", File: "roster.go", Run: "TestAReplaced", Protects: "a store that was replaced does not come back under another key",
		Old: "p.Former = append(p.Former, f)", New: "_ = f",
	},
	{
		Name: "pin/recall-formerly", File: "roster.go", Run: "TestAReplaced", Protects: "a store that was replaced does not come back under another key",
		Old: "case now.formerly(stored):", New: "case false:",
	},
	{
		Name: "pin/recall-further", File: "roster.go", Run: "TestStoresAre", Protects: "a store that was put back is not taken because it is known by an older key",
		Old: "if now.same(x.Peer.Version) && now.Generation >= x.Peer.Generation {", New: "if false {",
	},
	{
		Name: "pin/recall-other", File: "roster.go", Run: "TestStoresAre", Protects: "a party is not held to the store of another",
		Old: " || !bytes.Equal(x.Peer.ID, stored) || r.together(", New: " || r.together(",
	},
	{
		Name: "pin/recall-together", File: "roster.go", Run: "TestNobody", Protects: "a party has no say about the store of another",
		Old: "r.together(key, other) {", New: "r.together(key, other) && false {",
	},
	{
		Name: "pin/recall-guessed", File: "roster.go", Run: "TestAnotherParty", Protects: "what is guessed of a store is not held against another",
		Old: "if x.Peer == nil || x.Peer.Guessed || ", New: "if x.Peer == nil || ",
	},
	{
		Name: "pin/rosters", File: "roster.go", Run: "TestNobody", Protects: "a party has no say about the store of another",
		Old: "\told.replaced()\n", New: "",
	},
	{
		Name: "pin/anothers-left", File: "identity.go", Run: "TestNobody", Protects: "a party does not have another refused that has left",
		Old: "r.together(hex.EncodeToString(r.Keys[party]), name) {", New: "name == \"\" {",
	},
	{
		Name: "pin/anothers-unknown", File: "identity.go", Run: "TestNobody", Protects: "a party of which no store is known may come back under another key",
		Old: "if known(p) && !bytes.Equal(p.ID, stored) && known(x.Peer)", New: "if known(x.Peer)",
	},
	// Epochs that drain.
	{
		Name: "drain/there", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is gone does not come back",
		Old: "case e.State == EpochRetired:", New: "case false:",
	},
	{
		Name: "drain/locked", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is not active everywhere does not become so",
		Old: "case e.State == EpochLocked:", New: "case false:",
	},
	{
		Name: "drain/successor", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch has one successor",
		Old: "if e.State == EpochDraining && (e.Successor != 0 || successor == 0) {", New: "if e.State == EpochDraining && successor == 0 {",
	},
	{
		Name: "drain/generation", File: "drain.go", Run: "TestDrainEpoch", Protects: "a store that was put back is seen to have forgotten that an epoch drains",
		Old: "func (v *Vault) DrainEpoch(id, successor uint64) error {\n\treturn v.advance(", New: "func (v *Vault) DrainEpoch(id, successor uint64) error {\n\treturn v.update(",
	},
	{
		Name: "drain/revoke-generation", File: "drain.go", Run: "TestGeneration", Protects: "a store that was put back is seen to have forgotten that an epoch was revoked",
		Old: "var objects []string\n\terr = v.advance(func(tx store.Tx) error {\n\t\tobjects = nil\n\t\te, err := v.drainable", New: "var objects []string\n\terr = v.update(func(tx store.Tx) error {\n\t\tobjects = nil\n\t\te, err := v.drainable",
	},
	{
		Name: "drain/keys", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is revoked has no MAC keys",
		Old: "return k.Epoch == e.ID }, reason)", New: "return false }, reason)",
	},
	{
		Name: "drain/batches", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is revoked has no batches",
		Old: "return b.Epoch == e.ID }, reason)", New: "return false }, reason)",
	},
	{
		Name: "drain/batch", File: "batch.go", Run: "TestDrainEpoch", Protects: "no batch comes to lie under an epoch that drains",
		Old: "if err != nil || e.State != EpochActive {", New: "if err != nil {",
	},
	{
		Name: "drain/session", File: "epoch.go", Run: "TestDrainEpoch", Protects: "no session decrypts under an epoch that drains",
		Old: "if e.State != EpochActive || ", New: "if ",
	},
	{
		Name: "drain/stays", File: "epoch.go", Run: "TestDrainEpoch", Protects: "an epoch that drains is not activated again",
		Old: "case e.State != EpochLocked:\n\t\t\treturn nil", New: "case false:\n\t\t\treturn nil",
	},
	{
		Name: "epoch/once", File: "epoch.go", Run: "TestEpochs|TestRetire", Protects: "an id names one epoch, ever",
		Old: "if _, err := v.Epoch(e.ID); err == nil {", New: "if _, err := v.Epoch(e.ID); err == nil && false {",
	},
	{
		Name: "epoch/once-at-last", File: "epoch.go", Run: "TestTwoWritersOfAnEpoch", Protects: "an id names one epoch, ever",
		Old: "if _, err := w.v.Epoch(w.epoch.ID); err == nil {", New: "if _, err := w.v.Epoch(w.epoch.ID); err == nil && false {",
	},
	{
		Name: "epoch/retired", File: "epoch.go", Run: "TestRetire", Protects: "an epoch that is gone is not activated",
		Old: "case e.State == EpochRetired:\n\t\t\treturn fmt.Errorf(\"%w: epoch %d\", ErrErased, id)\n\t\tcase e.State != EpochLocked:", New: "case e.State != EpochLocked && e.State != EpochRetired:",
	},
	{
		Name: "epoch/locked-keys", File: "epoch.go", Run: "TestEpochs", Protects: "keys that are not active everywhere are not read",
		Old: "case e.State == EpochLocked:", New: "case false:",
	},
	{
		Name: "epoch/spend-quarantine", File: "epoch.go", Run: "TestQuarantine", Protects: "a store that may have been put back lets no session decrypt",
		Old: "if err := v.trusted(tx); err != nil {", New: "if err := v.trusted(tx); false {",
	},
	{
		Name: "epoch/spend-generation", File: "epoch.go", Run: "TestGeneration", Protects: "a store that was put back is seen to have forgotten decryptions",
		Old: "func (v *Vault) SpendDecryptions(id, n uint64) error {\n\treturn v.advance(", New: "func (v *Vault) SpendDecryptions(id, n uint64) error {\n\treturn v.update(",
	},
	{
		Name: "epoch/retire-generation", File: "epoch.go", Run: "TestGeneration", Protects: "a store that was put back is seen to have forgotten that an epoch is gone",
		Old: "var objects []string\n\terr = v.advance(", New: "var objects []string\n\terr = v.update(",
	},
	// What is held against peers.
	{
		Name: "accusation/once", File: "accusation.go", Run: "TestConductIsDurable", Protects: "a pardon stays when the same evidence comes again",
		Old: "if _, err := get[Accusation](v, tx, key); !errors.Is(err, ErrNotFound) {", New: "if _, err := get[Accusation](v, tx, key); err != nil && !errors.Is(err, ErrNotFound) {",
	},
	{
		Name: "accusation/per-culprit", File: "accusation.go", Run: "TestRoomForEvidence", Protects: "evidence against one party leaves room for that against others",
		Old: "(of[a.Key] >= r.PerCulprit || total > r.Bytes)", New: "total > r.Bytes",
	},
	{
		Name: "accusation/room", File: "accusation.go", Run: "TestRoomForEvidence", Protects: "evidence takes no more room than it may",
		Old: "(of[a.Key] >= r.PerCulprit || total > r.Bytes)", New: "of[a.Key] >= r.PerCulprit",
	},
	{
		Name: "accusation/first", File: "accusation.go", Run: "TestRoomForEvidence", Protects: "the first cheat of a party is kept, whatever others have filled",
		Old: "first := of[a.Key] == 0", New: "first := false",
	},
	{
		Name: "accusation/spare", File: "accusation.go", Run: "TestRoomForEvidence", Protects: "room is not made by giving up the only accusation of a party",
		Old: "if of[x.Key] > 1 {", New: "if of[x.Key] > 0 {",
	},
	{
		Name: "accusation/pardon", File: "accusation.go", Run: "TestConductIsDurable", Protects: "a pardon is whose it was",
		Old: "fresh := x.Pardon == nil", New: "fresh := true",
	},
	{
		Name: "accusation/backup", File: "backup.go", Run: "TestRestoreKeeps", Protects: "what is held against peers survives a restore",
		Old: "names = append(names, a.object())", New: "_ = a",
	},
	{
		Name: "conduct/stop", File: "conduct.go", Run: "TestFailuresCount", Protects: "too many failures stop a roster",
		Old: "if len(counted) >= t.Most && c.Stopped == nil {", New: "if false {",
	},
	{
		Name: "conduct/stays", File: "conduct.go", Run: "TestFailuresCount|TestConductIsDurable", Protects: "what a roster was stopped for does not change",
		Old: " && c.Stopped == nil {\n\t\t\tc.Stopped = &Stop", New: " {\n\t\t\tc.Stopped = &Stop",
	},
	{
		Name: "conduct/within", File: "conduct.go", Run: "TestFailuresCount", Protects: "failures of long ago stop nothing",
		Old: " || u.When.Sub(x.When) >= t.Within", New: "",
	},
	{
		Name: "conduct/cleared", File: "conduct.go", Run: "TestConductIsDurable", Protects: "cleared failures stop nothing",
		Old: "return x.Cleared || u.When", New: "return u.When",
	},
	{
		Name: "conduct/roster", File: "conduct.go", Run: "TestConductIsDurable", Protects: "failures of one roster stop no other",
		Old: "func conductKey(roster [32]byte) string { return conductPrefix + hex.EncodeToString(roster[:]) }", New: "func conductKey(roster [32]byte) string { return conductPrefix + hex.EncodeToString(roster[:0]) }",
	},
	{
		Name: "conduct/suspects", File: "conduct.go", Run: "TestConductIsDurable", Protects: "an operator hears of all suspects",
		Old: "s.Suspects = merged(s.Suspects, x.Suspects)", New: "",
	},
	{
		Name: "conduct/room", File: "conduct.go", Run: "TestRoomForEvidence", Protects: "failures take no more room than they may",
		Old: "len(all) >= maxUnnamed;", New: "false;",
	},
	{
		Name: "conduct/last", File: "conduct.go", Run: "TestConductIsDurable", Protects: "failures that an operator has not seen are not cleared",
		Old: "if last != 0 && last < c.Last {", New: "if false {",
	},
	{
		Name: "conduct/suspect", File: "conduct.go", Run: "TestSuspectEpoch", Protects: "suspect keys make nothing more",
		Old: "e.State, e.Reason = EpochDraining, reason", New: "e.Reason = reason",
	},
	{
		Name: "conduct/suspect-generation", File: "conduct.go", Run: "TestSuspectEpoch", Protects: "a store that was put back is seen to have forgotten that keys are suspect",
		Old: "run = v.advance", New: "run = v.update",
	},
}
