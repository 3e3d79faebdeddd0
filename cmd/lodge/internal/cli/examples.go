package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Examples holds the examples that end the help of each command. ID, BATCH, PATH and similar words
// stand for output of other commands.
var Examples = map[string]string{
	"accusations clear": `lodge accusations clear --cluster cluster --party p0 --reason disk --dry-run
lodge accusations clear --cluster cluster --party p0 --reason disk --yes`,
	"accusations export": `lodge accusations export ID --cluster cluster --party p0 --out p2.evidence`,
	"accusations list":   `lodge accusations list --cluster cluster --party p0`,
	"accusations pardon": `lodge accusations pardon ID --cluster cluster --party p0 --reason rebuilt --dry-run`,
	"accusations show":   `lodge accusations show ID --cluster cluster --party p0`,
	"accusations verify": `lodge accusations verify p2.evidence --roster cluster/roster.yaml
lodge accusations verify p2.evidence --roster cluster/roster.yaml --json`,
	"audit show": `lodge audit show cluster/p0/audit --tail 50
lodge audit show cluster/p0/audit --json`,
	"audit verify": `lodge audit verify cluster/p0/audit
lodge audit verify cluster/p0/audit --head HASH`,
	"batches list": `lodge batches list --cluster cluster --party p0
lodge batches list --cluster cluster --party p0 --epoch 1 --state available`,
	"config check": `lodge config check cluster/p0/party.yaml cluster/coordinator/coordinator.yaml cluster/roster.yaml
lodge config check cluster/p0/party.yaml --set policy.max_memory=8GiB --json`,
	"config keys": `lodge config keys party
lodge config keys coordinator --json
lodge config keys evaluator`,
	"ciphertexts decrypt": `lodge ciphertexts decrypt secret.ct --cluster cluster
lodge ciphertexts decrypt secret.ct --cluster cluster --out values`,
	"ciphertexts encrypt": `lodge ciphertexts encrypt 1 2 0xff --field p128 --out secret.ct --cluster cluster
lodge ciphertexts encrypt --in values --out secret.ct --at p1 --cluster cluster`,
	"ciphertexts show": `lodge ciphertexts show secret.ct --cluster cluster`,
	"ciphertexts verify": `lodge ciphertexts verify secret.ct --cluster cluster
lodge ciphertexts verify secret.ct --at p1 --cluster cluster`,
	"compose": `lodge compose --parties 5 --out docker-compose.yml
lodge compose --port 7200`,
	"compose init": `lodge compose init /cluster --parties 3`,
	"console open": `lodge console open --cluster cluster
lodge console open --cluster cluster --party p0 --json`,
	"coordinator": `lodge coordinator --config cluster/coordinator/coordinator.yaml`,
	"demo": `lodge demo --parties 2 --count 10000
lodge demo --cluster lodge-cluster --kind matrix --dim 128
lodge demo --parties 2 --export mp-spdz --out try`,
	"decrypt": `lodge decrypt secret.lwe --cluster cluster
lodge decrypt secret.lwe --cluster cluster --quorum p0,p2 --out values
lodge decrypt secret.lwe --cluster cluster --recipient alice.pub --out secret.answers`,
	"decrypt attest":    `lodge decrypt attest secret.lwe --key pipeline.pem --attester pipeline --circuit mean --out secret.word`,
	"decrypt attester":  `lodge decrypt attester --out pipeline.pem`,
	"decrypt approvals": `lodge decrypt approvals --client officer.yaml`,
	"decrypt approve":   `lodge decrypt approve DIGEST --client officer.yaml`,
	"decrypt open":      `lodge decrypt open secret.answers --key alice`,
	"decrypt recipient": `lodge decrypt recipient --out alice`,
	"demo decrypt": `lodge demo decrypt
lodge demo decrypt --parties 5 --json
lodge demo decrypt --all --parties 2 --field p128`,
	"demo linear": `lodge demo linear
lodge demo linear --json`,
	"demo multikey": `lodge demo multikey
lodge demo multikey --parties 3 --bits 8 --json`,
	"dev": `lodge dev
lodge dev --dir cluster --parties 2 --dim 128`,
	"doctor": `lodge doctor --cluster cluster
lodge doctor --config cluster/p0/party.yaml --offline --quiet
lodge doctor --roster roster.yaml --identity operator.pem --ca ca.pem --json`,
	"enrol": `lodge enrol p0 --name p0 --address p0.lodge.example:7100
lodge enrol coordinator --role coordinator --address coordinator.lodge.example:7100
lodge enrol operator --role client --name operator`,
	"evaluator": `lodge evaluator --config evaluator.yaml
lodge evaluator --config evaluator.yaml --set max_memory=16GiB`,
	"epochs list":       `lodge epochs list --cluster cluster --party p0`,
	"epochs public-key": `lodge epochs public-key 1 --cluster cluster --party p0 --out epoch-1.key`,
	"epochs retire": `lodge epochs retire 1 --cluster cluster --party p0 --dry-run
lodge epochs retire 1 --cluster cluster --party p0 --reason old --yes`,
	"export mp-spdz": `lodge export mp-spdz --from bits-1/party-0 --out online --dry-run
lodge export mp-spdz --from batch-1/party-0 --from batch-2/party-0 --out online
lodge export mp-spdz --reservation ID --party p0 --cluster cluster --out online --pipes`,
	"fetch": `lodge fetch ID --cluster cluster --party p0 --out shares
lodge fetch ID --cluster cluster --party p0 --out shares --with-mac-key`,
	"health": `lodge health
lodge health --config cluster/p0/party.yaml
lodge health --address 127.0.0.1:7199 --live`,
	"init": `lodge init cluster --dev
lodge init cluster --parties 2 --port 7200`,
	"jobs cancel": `lodge jobs cancel ID --cluster cluster --dry-run
lodge jobs cancel ID --cluster cluster --reason obsolete`,
	"jobs list": `lodge jobs list --cluster cluster
lodge jobs list --cluster cluster --state failed,timed_out --limit 5`,
	"jobs show": `lodge jobs show ID --cluster cluster
lodge jobs show ID --cluster cluster --json`,
	"jobs submit": `lodge jobs submit --cluster cluster --kind scalar --epoch 1 --count 10000
lodge jobs submit --cluster cluster --kind matrix --epoch 1 --shape 200x100x50 --dry-run`,
	"jobs watch": `lodge jobs watch ID --cluster cluster`,
	"keys destroy": `lodge keys destroy 1 --cluster cluster --dry-run
lodge keys destroy 1 --cluster cluster --reason rotated --yes`,
	"keys encrypt": `lodge keys encrypt 1 3 1 4 1 5 --out secret.lwe --cluster cluster
lodge keys encrypt 1 --in values --encoding padded --keys epoch-1.keys --out secret.lwe`,
	"keys fetch": `lodge keys fetch 1 --out epoch-1.keys --cluster cluster
lodge keys fetch 1 --evaluation --out epoch-1.keys --cluster cluster`,
	"keys generate": `lodge keys generate --purpose triples --block 128 --cluster cluster --wait
lodge keys generate --threshold 1 --holders p0,p1,p2 --params T11-4 --cluster cluster`,
	"keys list": `lodge keys list --cluster cluster`,
	"keys masks": `lodge keys masks 1 --every-quorum --count 1000 --cluster cluster --wait
lodge keys masks 1 --quorum p0,p2 --form paper --cluster cluster`,
	"keys reshare": `lodge keys reshare 1 --to p0,p1,p3 --cluster cluster --wait`,
	"keys rotate": `lodge keys rotate 1 --cluster cluster --dry-run
lodge keys rotate 1 --cluster cluster --security proved
lodge keys rotate 1 --cluster cluster --old revoke --destroy-old --yes`,
	"keys show": `lodge keys show 1 --cluster cluster
lodge keys show 1 --cluster cluster --json`,
	"linear batch": "lodge linear batch --run RUN --with client-p0 --share images-0.npy --outputs 8 --out sums-0.npy --cluster cluster",
	"linear join":  `lodge linear join product-0.npy product-1.npy --fraction 16 --out product.npy`,
	"linear multiply": `lodge linear multiply left.npy right.npy --out product.npy --cluster cluster
lodge linear multiply left.json right.json --max-left 1023 --max-right 1023 --out product.json --json`,
	"linear sets":  `lodge linear sets`,
	"linear split": `lodge linear split vector.npy vector-0.npy vector-1.npy --fraction 8`,
	"linear vector": `lodge linear vector --run RUN --with client-p0 --share vector-0.npy --rows 1000 --out product-0.npy --cluster cluster
lodge linear vector --run RUN --with app --share vector-1.npy --matrix weights.npy --fraction 8 --out product-1.npy --client client-p0.yaml`,
	"log-level": `lodge log-level --cluster cluster
lodge log-level debug --at p1,coordinator --for 10m --cluster cluster`,
	"mac-keys draw": `lodge mac-keys draw ID --cluster cluster --party p0 --out mac-key-share`,
	"mac-keys list": `lodge mac-keys list --cluster cluster --party p0`,
	"mac-keys report-failed": `lodge mac-keys report-failed ID --cluster cluster --party p0 --dry-run
lodge mac-keys report-failed ID --cluster cluster --party p0 --reason game-4 --yes`,
	"mk attest": `lodge mk attest sum.mk --key attester --attester pipeline --circuit adder-16 --out sum.word --cluster cluster`,
	"mk decrypt": `lodge mk decrypt sum.mk --cluster cluster
lodge mk decrypt sum.mk --epoch 1 --quorum p0,p1 --cluster cluster --json
lodge mk decrypt sum.mk --recipient carol.pub --out sum.sealed --provenance sum.word --cluster cluster`,
	"mk encrypt":       `lodge mk encrypt 0110 --party p0 --out alice.mk --cluster cluster`,
	"mk keys destroy":  `lodge mk keys destroy 1 --party p0 --reason leaked --yes --cluster cluster`,
	"mk keys list":     `lodge mk keys list --party p0 --cluster cluster`,
	"mk keys generate": `lodge mk keys generate --party p0 --cluster cluster`,
	"mk evaluate": `lodge mk evaluate auction.netlist --in alice.mk --in bob.mk --party p0 --cluster cluster --estimate
lodge mk evaluate auction.netlist --in alice.mk --in bob.mk --party p0 --cluster cluster --out winner.mk`,
	"mk jobs":            `lodge mk jobs --party p0 --cluster cluster`,
	"mk netlist check":   `lodge mk netlist check auction.netlist`,
	"mk netlist example": `lodge mk netlist example second-price-auction 4 16 --out auction.netlist`,
	"mk registry fetch":  `lodge mk registry fetch DIGEST --party p0 --cluster cluster --out alice.keys`,
	"mk seed combine":    `lodge mk seed combine p0.reveal p1.reveal --out toss`,
	"mk seed commit":     `lodge mk seed commit p0/entry.yaml p1/entry.yaml --label first --dir p0 --out p0.commit`,
	"mk seed reveal":     `lodge mk seed reveal p0.commit p1.commit --dir p0 --out p0.reveal`,
	"mk seed verify":     `lodge mk seed verify toss --roster roster.yaml`,
	"mk registry list":   `lodge mk registry list --party p0 --cluster cluster`,
	"params list": `lodge params list
lodge params list --all --json`,
	"params show": `lodge params show S14-32
lodge params show S14-32 --field p128 --parties 5 --dim 128
lodge params show T11-4`,
	"party": `lodge party --config cluster/p0/party.yaml`,
	"release": `lodge release ID --cluster cluster --dry-run
lodge release ID --cluster cluster`,
	"reservations list": `lodge reservations list --cluster cluster --open
lodge reservations list --cluster cluster --party p1`,
	"reservations show": `lodge reservations show ID --cluster cluster
lodge reservations show ID --cluster cluster --party p1`,
	"reserve": `lodge reserve --cluster cluster --kind scalar --count 1000 --lease 30m --idempotency-key game-17
lodge reserve --cluster cluster --kind matrix --shape 200x100x50 --count 1 --wait --timeout 1h
lodge reserve --cluster cluster --kind bit --count 500 --clients client-p0,client-p1,client-p2`,
	"roster join": `lodge roster join p0.yaml p1.yaml p2.yaml coordinator.yaml --out roster.yaml
lodge roster join p0.yaml p1.yaml coordinator.yaml --toss toss --out roster.yaml`,
	"roster show": `lodge roster show roster.yaml
lodge roster show roster.yaml --json`,
	"revoke": `lodge revoke BATCH --cluster cluster --party p0 --reason leaked --dry-run
lodge revoke --mac-key ID --cluster cluster --party p0 --yes`,
	"status": `lodge status --cluster cluster
lodge status --cluster cluster --json`,
	"stock": `lodge stock --cluster cluster
lodge stock --cluster cluster --watch`,
	"stock policies delete": `lodge stock policies delete --cluster cluster --kind scalar --dry-run`,
	"stock policies list":   `lodge stock policies list --cluster cluster`,
	"stock policies set": `lodge stock policies set --cluster cluster --kind scalar --low 100000 --high 500000 --batch 60000
lodge stock policies set --cluster cluster --kind matrix --shape 128 --low 500 --high 2000 --batch 256`,
	"store backup": `lodge store backup --config cluster/p0/party.yaml --out p0.backup`,
	"store check": `lodge store check --config cluster/p0/party.yaml
lodge store check --config cluster/p0/party.yaml --deep --json`,
	"store quarantine": `lodge store quarantine --config cluster/p0/party.yaml
lodge store quarantine --config cluster/p0/party.yaml --leave`,
	"store restore":    `lodge store restore --config cluster/p0/party.yaml --in p0.backup --dry-run`,
	"store rotate-key": `lodge store rotate-key --config cluster/p0/party.yaml --new-key-file new.key`,
	"store stats":      `lodge store stats --config cluster/p0/party.yaml`,
	"verify": `lodge verify shares
lodge verify shares/p0 shares/p1 --json`,
	"version": `lodge version
lodge version --json`,
}

// AddExamples sets the examples of cmd and its subcommands.
func AddExamples(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		AddExamples(sub)
	}
	if text, ok := Examples[strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")]; ok {
		cmd.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
}
