package config

import (
	"strings"
	"testing"
)

const thresholdYAML = `  - name: app
    identity: spiffe://lodge/client/app
    permissions: [decrypt]
  - name: officer
    identity: spiffe://lodge/client/officer
    permissions: [approve]
allow_passive_threshold: true
threshold:
  attesters:
    - {name: pipeline, key: 7bc1b4e0dd9b1f6f0c3d8a3e6a2b2f7f93ab1f0cfbf1bf2e7d5d1b20c1f4a2c9}
  rules:
    - client: app
      epochs: [1, 2]
      keys: [` + digest + `]
      provenance: [pipeline]
      messages_per_hour: 100
      approvals: 1
    - client: app
      epochs: [2, 3]
      any_ciphertexts: true
      messages_per_hour: 200
    - client: "*"
      keys: [` + digest + `]
      provenance: [pipeline]
      messages_per_hour: 300
      max_messages: 5
  reshare:
    holders: [bob]
`

const digest = "9C000000000000000000000000000000000000000000000000000000000000ff"

func loadThreshold(t *testing.T, yaml string) (*PartyFile, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	return LoadParty(write(t, dir, "party.yaml", strings.Replace(partyYAML, "policy:\n", yaml+"policy:\n", 1)))
}

// The first rule that matches client, epoch and keys applies.
func TestDecryptRules(t *testing.T) {
	f, err := loadThreshold(t, thresholdYAML)
	if err != nil {
		t.Fatal(err)
	}
	mine := [32]byte{0: 0x9c, 31: 0xff}
	for _, c := range []struct {
		client string
		epoch  uint64
		keys   [32]byte
		want   int // messages per hour; 0: no rule
	}{
		{"app", 1, mine, 100}, {"app", 2, mine, 100}, {"app", 3, mine, 200}, {"app", 4, mine, 300}, {"other", 1, mine, 300},
		{"app", 1, [32]byte{}, 0}, {"app", 2, [32]byte{}, 200}, {"app", 4, [32]byte{}, 0}, {"other", 2, [32]byte{}, 0},
	} {
		r, ok := f.Threshold.Rule(c.client, c.epoch, c.keys)
		if r.MessagesPerHour != c.want || ok != (c.want > 0) {
			t.Errorf("%s, epoch %d, keys %.2x: %+v, want the rule with %d", c.client, c.epoch, c.keys, r, c.want)
		}
	}
	if r := f.Threshold.Rules; r[0].MaxMessages != 1<<16 || r[2].MaxMessages != 5 {
		t.Errorf("%+v", r)
	}
	if _, ok := (&Threshold{}).Rule("app", 1, mine); ok {
		t.Error("without rules something is decrypted")
	}
}

func TestThresholdRefusals(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"attester's name", "name: pipeline", "name: Pipe line", "threshold.attesters"},
		{"attester's key", "key: 7bc1b4", "key: 7bc1", "threshold.attesters[0].key"},
		{"attester twice", "  rules:", "    - {name: pipeline, key: 7bc1b4e0dd9b1f6f0c3d8a3e6a2b2f7f93ab1f0cfbf1bf2e7d5d1b20c1f4a2c9}\n  rules:", "occurs twice"},
		{"unknown attester", "provenance: [pipeline]", "provenance: [nobody]", "not among threshold.attesters"},
		{"unknown client", "- client: app\n      epochs: [1, 2]", "- client: nobody\n      epochs: [1, 2]", "threshold.rules[0].client"},
		{"client without permission", "- client: app\n      epochs: [1, 2]", "- client: officer\n      epochs: [1, 2]", "threshold.rules[0].client"},
		{"short digest", "keys: [9C", "keys: [", "threshold.rules[0].keys"},
		{"no digest", "keys: [9C", "keys: [zz", "threshold.rules[0].keys"},
		{"no rate", "      messages_per_hour: 200\n", "", "threshold.rules[1]"},
		{"negative rate", "messages_per_hour: 200", "messages_per_hour: -1", "threshold.rules[1]"},
		{"too many messages", "max_messages: 5", "max_messages: 1048577", "threshold.rules[2]"},
		{"more approvals than clients", "approvals: 1", "approvals: 2", "threshold.rules[0].approvals"},
		{"negative approvals", "approvals: 1", "approvals: -1", "threshold.rules[0]"},
		{"unknown key", "approvals: 1", "approval: 1", "approval"},
		{"new holder of another roster", "holders: [bob]", "holders: [carol]", "threshold.reshare.holders"},
	} {
		yaml := strings.Replace(thresholdYAML, c.old, c.new, 1)
		if yaml == thresholdYAML {
			t.Fatalf("%s changes nothing", c.name)
		}
		if _, err := loadThreshold(t, yaml); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A rule names attesters, requires approvals, or states that its client may read the key. Any other
// rule is refused.
func TestUnguardedRules(t *testing.T) {
	const head = `  - name: app
    identity: spiffe://lodge/client/app
    permissions: [decrypt]
  - name: officer
    identity: spiffe://lodge/client/officer
    permissions: [approve]
threshold:
  attesters:
    - {name: pipeline, key: 7bc1b4e0dd9b1f6f0c3d8a3e6a2b2f7f93ab1f0cfbf1bf2e7d5d1b20c1f4a2c9}
  rules:
`
	for _, c := range []struct{ rule, want string }{
		{"{client: app, messages_per_hour: 1, provenance: [pipeline]}", ""},
		{"{client: app, messages_per_hour: 1, approvals: 1}", ""},
		{"{client: app, messages_per_hour: 1, approvals: 1, provenance: [pipeline], allow_flooding: true}", ""},
		{"{client: '*', messages_per_hour: 1, provenance: [pipeline]}", ""},
		{"{client: app, messages_per_hour: 1, any_ciphertexts: true}", ""},
		{"{client: app, messages_per_hour: 1, any_ciphertexts: true, max_total: 20000, allow_multikey: true}", ""},
		{"{client: app, messages_per_hour: 1}", "threshold.rules[0].provenance: missing"},
		{"{client: app, messages_per_hour: 1, any_ciphertexts: false}", "lets it read the key"},
		{"{client: app, messages_per_hour: 1, provenance: []}", "threshold.rules[0].provenance: missing"},
		{"{client: app, messages_per_hour: 1, allow_multikey: true}", "threshold.rules[0].provenance: missing"},
		{"{client: app, messages_per_hour: 1, allow_flooding: true}", "threshold.rules[0].provenance: missing"},
		{"{client: app, messages_per_hour: 1, any_ciphertexts: true, provenance: [pipeline]}", "also has provenance or approvals"},
		{"{client: app, messages_per_hour: 1, any_ciphertexts: true, approvals: 1}", "also has provenance or approvals"},
		{"{client: '*', messages_per_hour: 1, any_ciphertexts: true}", `not for client "*"`},
		{"{client: app, messages_per_hour: 1, any_ciphertexts: true, allow_flooding: true}", "not together with allow_flooding"},
	} {
		f, err := loadThreshold(t, head+"    - "+c.rule+"\n")
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.rule, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		r, readers := f.Threshold.Rules[0], f.Threshold.KeyReaders()
		if r.AnyCiphertexts != (len(readers) == 1) {
			t.Errorf("%s: %d rules let their clients read keys", c.rule, len(readers))
		}
		want := uint64(0)
		switch {
		case strings.Contains(c.rule, "max_total"):
			want = 20000
		case r.AnyCiphertexts:
			want = 10000
		}
		if r.MaxTotal != want {
			t.Errorf("%s: a total of %d, want %d", c.rule, r.MaxTotal, want)
		}
		if w := r.Warning(); r.AnyCiphertexts && (!strings.Contains(w, "can read the keys") || !strings.Contains(w, `"app"`)) {
			t.Errorf("%s: %s", c.rule, w)
		}
	}
}
