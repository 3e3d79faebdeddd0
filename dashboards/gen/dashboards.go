package main

// dashboards are all of them. Targets have the label process: docs/metrics.md.
var dashboards = []dashboard{overview, rounds, stock, party, decryption, multikey}

const (
	lodge   = `job=~".*lodge.*"`
	chosen  = `process=~"$process"`
	decrypt = `method="/lodge.decryption.v1.DecryptionService/DecryptShare"`
	quorums = `method="/lodge.threshold.v1.ThresholdService/Decrypt"`
)

var processes = variable{name: "process", label: "Process", query: "label_values(lodge_build_info, process)", several: true}

var overview = dashboard{
	name: "overview", title: "overview", about: "Whether a cluster is well, and what it does.",
	variables: []variable{processes},
	panels: []panel{
		{kind: "stat", title: "Processes up", about: "Of those that Prometheus knows, how many answer.", unit: "percentunit", width: 4, height: 4,
			queries: []query{{`avg(up{` + lodge + `})`, ""}}, steps: []step{{0, "red"}, {1, "green"}}},
		{kind: "stat", title: "Links up", about: "Of all pairs of a process and a party, in how many the party answers.", unit: "percentunit",
			width: 4, height: 4, queries: []query{{`avg(lodge_peer_up)`, ""}}, steps: []step{{0, "red"}, {1, "green"}}},
		{kind: "stat", title: "Alerts", about: "That fire now: docs/operations/alerts.md says what each means.", unit: "none", width: 4, height: 4,
			queries: []query{{`sum(ALERTS{alertstate="firing", alertname=~"Lodge.+"}) or vector(0)`, ""}}, steps: zero},
		{kind: "stat", title: "Lowest stock", about: "Available tuples over the low mark, of the policy that has least of it.", unit: "percentunit",
			width: 4, height: 4, queries: []query{{`min(lodge_stock_low_watermark_ratio)`, ""}},
			steps: []step{{0, "red"}, {0.5, "orange"}, {1, "green"}}},
		{kind: "stat", title: "Empty in", about: "Until the class that is used up first has none left; nothing where that is never.", unit: "s",
			width: 4, height: 4, queries: []query{{`min(lodge_stock_time_to_empty_seconds)`, ""}},
			steps: []step{{0, "red"}, {3600, "orange"}, {86400, "green"}}},
		{kind: "stat", title: "Certificates", about: "Until the first certificate of a process expires.", unit: "s", width: 4, height: 4,
			queries: []query{{`min(lodge_certificate_expiry_timestamp_seconds) - time()`, ""}},
			steps:   []step{{0, "red"}, {2 * 86400, "orange"}, {14 * 86400, "green"}}},
		{kind: "timeseries", title: "Jobs by state", about: "Jobs that are not over.", unit: "none", width: 8, height: 8, stacked: true,
			queries: []query{{`sum by (state) (lodge_jobs)`, "{{state}}"}}},
		{kind: "timeseries", title: "What jobs wait for", about: "Reasons of jobs that are not over; `nothing` is that all parties compute.",
			unit: "none", width: 8, height: 8, stacked: true, queries: []query{{`sum by (reason) (lodge_jobs)`, "{{reason}}"}}},
		{kind: "timeseries", title: "Jobs that ended", about: "In each interval, by how they ended.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (state) (increase(lodge_jobs_ended_total[$__rate_interval]))`, "{{state}}"}}},
		{kind: "timeseries", title: "Tuples made", about: "That were activated, a second, by kind.", unit: "none", width: 8, height: 8,
			queries: []query{{`max by (kind) (sum by (kind, process) (rate(lodge_tuples_stored_total[$__rate_interval])))`, "{{kind}}"}}},
		{kind: "timeseries", title: "Stock", about: "Tuples that can be reserved, by kind.", unit: "short", width: 8, height: 8,
			queries: []query{{`sum by (kind) (lodge_stock_tuples{state="available"})`, "{{kind}}"}}},
		{kind: "bargauge", title: "Conduct", about: "What should be 0 everywhere. docs/accusations.md says what it means.", unit: "none", width: 8, height: 8,
			queries: []query{
				{`round(sum(increase(lodge_blames_total[$__range])))`, "blames"},
				{`round(sum(increase(lodge_mac_check_failures_total[$__range])))`, "failed checks of MACs"},
				{`max(lodge_unnamed_failures)`, "failures with nobody named"},
				{`max(lodge_accusations)`, "accusations"},
				{`max(lodge_excluded_parties)`, "excluded parties"},
				{`sum(lodge_generation_stopped)`, "parties that have stopped"},
				{`sum(lodge_store_quarantined)`, "stores in quarantine"},
				{`sum(lodge_store_fault)`, "stores at fault"},
			}, steps: zero, max: 3},
		{kind: "timeseries", title: "Processors", about: "Cores that a process keeps busy.", unit: "none", width: 12, height: 7,
			queries: []query{{`rate(process_cpu_seconds_total{` + lodge + `, ` + chosen + `}[$__rate_interval])`, "{{process}}"}}},
		{kind: "timeseries", title: "Memory", about: "Resident memory.", unit: "bytes", width: 12, height: 7,
			queries: []query{{`process_resident_memory_bytes{` + lodge + `, ` + chosen + `}`, "{{process}}"}}},
	},
}

var rounds = dashboard{
	name: "rounds", title: "rounds and network", about: "Where the time of sessions goes, and what travels between parties.",
	variables: []variable{
		{name: "process", label: "Party", query: "label_values(lodge_round_duration_seconds_count, process)", several: true},
		{name: "protocol", label: "Protocol", query: "label_values(lodge_round_duration_seconds_count, protocol)", several: true},
	},
	panels: []panel{
		{kind: "state-timeline", title: "Who reaches whom", about: "Whether a party answers a process, which asks every five seconds.", unit: "none",
			width: 12, height: 8, queries: []query{{`lodge_peer_up{` + chosen + `}`, "{{process}} → {{peer}}"}}, steps: one},
		{kind: "heatmap", title: "Round trips", about: "How many questions to peers took how long.", unit: "s", width: 12, height: 8,
			queries: []query{{`sum by (le) (increase(lodge_peer_round_trip_seconds_bucket{` + chosen + `}[$__rate_interval]))`, "{{le}}"}}},
		{kind: "heatmap", title: "Bandwidth by link", about: "Bytes a second that a party sends to another: a row for each link.", unit: "Bps",
			width: 12, height: 8, queries: []query{{`sum by (process, peer) (rate(lodge_peer_bytes_total{direction="sent", ` + chosen + `}[$__rate_interval]))`, "{{process}} → {{peer}}"}}},
		{kind: "timeseries", title: "Bandwidth", about: "Bytes a second that a party sends to all others.", unit: "Bps", width: 12, height: 8,
			queries: []query{{`sum by (process) (rate(lodge_peer_bytes_total{direction="sent", ` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "bargauge", title: "Time by round", about: "Seconds in each round since the beginning of the time shown, waiting included, as a mean of the parties: the 15 longest.",
			unit: "s", width: 8, height: 12, queries: []query{{`topk(15, avg by (protocol, round) (increase(lodge_round_duration_seconds_sum{` + chosen + `, protocol=~"$protocol"}[$__range])))`, "{{protocol}}: {{round}}"}}},
		{kind: "bargauge", title: "Own time by round", about: "The part of it that is the party's own step.", unit: "s", width: 8, height: 12,
			queries: []query{{`topk(15, avg by (protocol, round) (increase(lodge_round_compute_seconds_sum{` + chosen + `, protocol=~"$protocol"}[$__range])))`, "{{protocol}}: {{round}}"}}},
		{kind: "bargauge", title: "Bytes by round", about: "Sent to all peers since the beginning of the time shown, as a mean of the parties: the 15 largest.",
			unit: "bytes", width: 8, height: 12, queries: []query{{`topk(15, avg by (protocol, round) (sum by (process, protocol, round) (increase(lodge_peer_bytes_total{direction="sent", ` + chosen + `, protocol=~"$protocol"}[$__range]))))`, "{{protocol}}: {{round}}"}}},
		{kind: "timeseries", title: "Sessions", about: "That run now.", unit: "none", width: 8, height: 7,
			queries: []query{{`lodge_sessions_running{` + chosen + `, protocol=~"$protocol"}`, "{{process}}: {{protocol}}"}}},
		{kind: "timeseries", title: "Time of sessions", about: "Half of them and 95 of 100 took at most so long.", unit: "s", width: 8, height: 7,
			queries: []query{
				{quantile(0.5, "lodge_session_duration_seconds", chosen+`, protocol=~"$protocol"`, "protocol"), "{{protocol}}, half"},
				{quantile(0.95, "lodge_session_duration_seconds", chosen+`, protocol=~"$protocol"`, "protocol"), "{{protocol}}, 95 of 100"},
			}},
		{kind: "timeseries", title: "Streams resumed", about: "After a connection broke, in each interval.", unit: "none", width: 8, height: 7,
			queries: []query{{`sum by (process, peer) (increase(lodge_peer_resumes_total{` + chosen + `}[$__rate_interval]))`, "{{process}} → {{peer}}"}}},
	},
}

const class = `tenant=~"$tenant", kind=~"$kind"`

var stock = dashboard{
	name: "stock", title: "stock", about: "What can be reserved, what is made, and what clients take.",
	variables: []variable{
		{name: "tenant", label: "Tenant", query: "label_values(lodge_stock_tuples, tenant)", several: true},
		{name: "kind", label: "Kind", query: "label_values(lodge_stock_tuples, kind)", several: true},
	},
	panels: []panel{
		{kind: "bargauge", title: "Share of the low mark", about: "Available tuples over the low mark, of the policy that has least of it. More are made from 100 % on.",
			unit: "percentunit", width: 8, height: 6, queries: []query{{`lodge_stock_low_watermark_ratio{` + class + `}`, "{{tenant}} {{kind}} {{field}}"}},
			steps: []step{{0, "red"}, {0.5, "orange"}, {1, "green"}}, max: 2},
		{kind: "stat", title: "Policies held back", about: "That make nothing although there is too little. `lodge stock` says why.", unit: "none", width: 4, height: 6,
			queries: []query{{`sum(lodge_stock_policies_held{` + class + `})`, ""}}, steps: zero},
		{kind: "bargauge", title: "Empty in", about: "As tuples came and went lately; a class that is never empty is not shown.", unit: "s", width: 6, height: 6,
			queries: []query{{`lodge_stock_time_to_empty_seconds{` + class + `}`, "{{tenant}} {{kind}} {{field}}"}},
			steps:   []step{{0, "red"}, {3600, "orange"}, {86400, "green"}}, max: 86400},
		{kind: "bargauge", title: "Since the last job", about: "Since a job of a kind last completed.", unit: "s", width: 6, height: 6,
			queries: []query{{`time() - lodge_job_last_completed_timestamp_seconds`, "{{kind}}"}}},
		{kind: "timeseries", title: "Available and marks", about: "Tuples that can be reserved, and the marks between which policies keep them.", unit: "short", width: 12, height: 9,
			queries: []query{
				{`sum by (kind) (lodge_stock_tuples{state="available", ` + class + `})`, "{{kind}}"},
				{`sum by (kind) (lodge_stock_low_watermark_tuples{` + class + `})`, "{{kind}}, low mark"},
				{`sum by (kind) (lodge_stock_high_watermark_tuples{` + class + `})`, "{{kind}}, high mark"},
			}},
		{kind: "timeseries", title: "Tuples by state", about: "What became of all tuples that are known.", unit: "short", width: 12, height: 9, stacked: true,
			queries: []query{{`sum by (state) (lodge_stock_tuples{` + class + `})`, "{{state}}"}}},
		{kind: "timeseries", title: "Made and delivered", about: "Tuples a second, of the party that made or gave most.", unit: "none", width: 12, height: 8,
			queries: []query{
				{`max by (kind) (sum by (kind, process) (rate(lodge_tuples_stored_total{kind=~"$kind"}[$__rate_interval])))`, "{{kind}} made"},
				{`max by (kind) (sum by (kind, process) (rate(lodge_tuples_delivered_total{kind=~"$kind"}[$__rate_interval])))`, "{{kind}} delivered"},
			}},
		{kind: "timeseries", title: "Reservations", about: "Attempts in each interval, by outcome.", unit: "none", width: 6, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_reservations_total[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Time of a reservation", about: "Half of them and 99 of 100 took at most so long; those that waited for stock are not counted.", unit: "s", width: 6, height: 8,
			queries: []query{{quantile(0.5, "lodge_reservation_seconds", "", ""), "half"}, {quantile(0.99, "lodge_reservation_seconds", "", ""), "99 of 100"}}},
	},
}

var party = dashboard{
	name: "party", title: "one party", about: "A party's process: what it computes, keeps, serves, and holds against its peers.",
	variables: []variable{{name: "process", label: "Party", query: "label_values(lodge_store_bytes, process)"}},
	panels: []panel{
		{kind: "stat", title: "Up since", about: "How long the process has run.", unit: "s", width: 4, height: 4,
			queries: []query{{`time() - process_start_time_seconds{` + lodge + `, ` + chosen + `}`, ""}}},
		{kind: "stat", title: "Peers up", about: "Of the peers, how many answer.", unit: "percentunit", width: 4, height: 4,
			queries: []query{{`avg(lodge_peer_up{` + chosen + `})`, ""}}, steps: one},
		{kind: "stat", title: "Quarantine", about: "1 while the store is in quarantine.", unit: "none", width: 4, height: 4,
			queries: []query{{`lodge_store_quarantined{` + chosen + `}`, ""}}, steps: zero},
		{kind: "stat", title: "Generation stopped", about: "1 while failures with nobody named stop generation.", unit: "none", width: 4, height: 4,
			queries: []query{{`lodge_generation_stopped{` + chosen + `}`, ""}}, steps: zero},
		{kind: "stat", title: "Store", about: "What the store takes.", unit: "bytes", width: 4, height: 4, queries: []query{{`lodge_store_bytes{` + chosen + `}`, ""}}},
		{kind: "stat", title: "Certificate", about: "Until it expires.", unit: "s", width: 4, height: 4,
			queries: []query{{`lodge_certificate_expiry_timestamp_seconds{` + chosen + `} - time()`, ""}},
			steps:   []step{{0, "red"}, {2 * 86400, "orange"}, {14 * 86400, "green"}}},
		{kind: "timeseries", title: "Processors", about: "Cores that it keeps busy.", unit: "none", width: 8, height: 7,
			queries: []query{{`rate(process_cpu_seconds_total{` + lodge + `, ` + chosen + `}[$__rate_interval])`, "cores"}}},
		{kind: "timeseries", title: "Memory", about: "Resident memory, and what Go's heap has of it.", unit: "bytes", width: 8, height: 7,
			queries: []query{
				{`process_resident_memory_bytes{` + lodge + `, ` + chosen + `}`, "resident"},
				{`go_memstats_heap_inuse_bytes{` + lodge + `, ` + chosen + `}`, "heap"},
			}},
		{kind: "timeseries", title: "Network", about: "Bytes of frames a second, to and from all peers.", unit: "Bps", width: 8, height: 7,
			queries: []query{{`sum by (direction) (rate(lodge_peer_bytes_total{` + chosen + `}[$__rate_interval]))`, "{{direction}}"}}},
		{kind: "timeseries", title: "Sessions that ended", about: "In each interval, by protocol and outcome.", unit: "none", width: 8, height: 7,
			queries: []query{{`sum by (protocol, outcome) (increase(lodge_sessions_total{` + chosen + `}[$__rate_interval]))`, "{{protocol}}: {{outcome}}"}}},
		{kind: "timeseries", title: "Proofs verified", about: "A second, by what they prove and outcome.", unit: "none", width: 8, height: 7,
			queries: []query{{`sum by (proof, outcome) (rate(lodge_proofs_checked_total{` + chosen + `}[$__rate_interval]))`, "{{proof}}: {{outcome}}"}}},
		{kind: "bargauge", title: "Held against peers", about: "Blames since the beginning of the time shown, by peer and class of check.", unit: "none", width: 8, height: 7,
			queries: []query{{`round(sum by (peer) (increase(lodge_blames_total{` + chosen + `}[$__range])))`, "blames of {{peer}}"},
				{`lodge_unnamed_failures{` + chosen + `}`, "failures with nobody named"}, {`lodge_accusations{` + chosen + `}`, "accusations"}},
			steps: zero, max: 3},
		{kind: "timeseries", title: "Calls", about: "That were served, a second, by who called and with which result.", unit: "reqps", width: 8, height: 7,
			queries: []query{{`sum by (role, code) (rate(lodge_rpc_duration_seconds_count{` + chosen + `}[$__rate_interval]))`, "{{role}}: {{code}}"}}},
		{kind: "timeseries", title: "Streams", about: "That callers have open.", unit: "none", width: 8, height: 7, stacked: true,
			queries: []query{{`lodge_rpc_streams{` + chosen + `}`, "{{role}}"}}},
		{kind: "bargauge", title: "Slowest calls", about: "Mean time of calls by method since the beginning of the time shown; those that follow a job take as long as it does.",
			unit: "s", width: 8, height: 7, queries: []query{{`topk(8, sum by (method) (increase(lodge_rpc_duration_seconds_sum{` + chosen + `}[$__range])) / (sum by (method) (increase(lodge_rpc_duration_seconds_count{` + chosen + `}[$__range])) > 0))`, "{{method}}"}}},
		{kind: "bargauge", title: "Records", about: "In the store, by kind; counted every five minutes.", unit: "none", width: 8, height: 7,
			queries: []query{{`lodge_store_records{` + chosen + `}`, "{{kind}}"}}},
		{kind: "bargauge", title: "Room on disks", about: "Of the file systems of the store and of the audit log, what is free.", unit: "percentunit", width: 8, height: 7,
			queries: []query{{`lodge_disk_free_bytes{` + chosen + `} / lodge_disk_size_bytes{` + chosen + `}`, "{{volume}}"}},
			steps:   []step{{0, "red"}, {0.02, "orange"}, {0.3, "green"}}, max: 1},
		{kind: "timeseries", title: "Goroutines", about: "They grow without end where something leaks.", unit: "none", width: 8, height: 7,
			queries: []query{{`go_goroutines{` + lodge + `, ` + chosen + `}`, "goroutines"}}},
	},
}

var decryption = dashboard{
	name: "decryption", title: "decryption for clients", about: "What clients have decrypted, and how long it takes.",
	variables: []variable{{name: "process", label: "Party", query: "label_values(lodge_store_bytes, process)", several: true}},
	panels: []panel{
		{kind: "stat", title: "Answered", about: "Requests for which a party gave its share for the first time, since the beginning of the time shown, under threshold keys too.", unit: "none", width: 8, height: 5,
			queries: []query{{`round(sum by (process) (increase(lodge_decryptions_total{outcome="answered", ` + chosen + `}[$__range])))`, "{{process}}"}}},
		{kind: "stat", title: "Ahead of others", about: "Requests to all parties that the party has answered which has answered most, less those of the one that has answered fewest: what did not reach all parties.", unit: "none", width: 8, height: 5,
			queries: []query{{`max(sum by (process) (lodge_rpc_duration_seconds_count{code="ok", ` + decrypt + `, ` + chosen + `})) - min(sum by (process) (lodge_rpc_duration_seconds_count{code="ok", ` + decrypt + `, ` + chosen + `}))`, ""}}},
		{kind: "stat", title: "Proofs refused", about: "Of clients, since the beginning of the time shown.", unit: "none", width: 8, height: 5,
			queries: []query{{`round(sum(increase(lodge_proofs_checked_total{proof="client", outcome="refused", ` + chosen + `}[$__range])))`, ""}}, steps: zero},
		{kind: "timeseries", title: "Requests by outcome", about: "In each interval: `answered`, `repeated` for the same client again, or why it was refused.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_decryptions_total{` + chosen + `}[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Requests by party", about: "In each interval, under keys that all parties decrypt with: clients ask all, so that the lines are the same.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_rpc_duration_seconds_count{` + decrypt + `, ` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "timeseries", title: "Time of a request", about: "Half of them and 95 of 100 took at most so long, upload included.", unit: "s", width: 12, height: 8,
			queries: []query{
				{quantile(0.5, "lodge_rpc_duration_seconds", decrypt+", "+chosen, "process"), "{{process}}, half"},
				{quantile(0.95, "lodge_rpc_duration_seconds", decrypt+", "+chosen, "process"), "{{process}}, 95 of 100"},
			}},
		{kind: "timeseries", title: "Streams of clients", about: "That are open: at most 32 of each client.", unit: "none", width: 12, height: 8,
			queries: []query{{`lodge_rpc_streams{role="client", ` + chosen + `}`, "{{process}}"}}},
		{kind: "timeseries", title: "Messages under threshold keys, by form of masks", about: "Decrypted for the first time, in each interval: each has taken a mask at every party of its quorum, and counts at each.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (form) (increase(lodge_threshold_messages_total{` + chosen + `}[$__rate_interval]))`, "{{form}}"}}},
		{kind: "timeseries", title: "Messages under threshold keys, by party", about: "In each interval. Whoever is in no quorum that clients ask has none.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_threshold_messages_total{` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "timeseries", title: "Requests under threshold keys, by outcome", about: "In each interval: `ok`, or the code of the refusal, such as `out_of_stock` for masks.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (code) (increase(lodge_rpc_duration_seconds_count{` + quorums + `, ` + chosen + `}[$__rate_interval]))`, "{{code}}"}}},
		{kind: "timeseries", title: "Time of a request under threshold keys", about: "Half of them and 95 of 100 took at most so long, upload and the run with the quorum included.", unit: "s", width: 12, height: 8,
			queries: []query{
				{quantile(0.5, "lodge_rpc_duration_seconds", quorums+", "+chosen, "process"), "{{process}}, half"},
				{quantile(0.95, "lodge_rpc_duration_seconds", quorums+", "+chosen, "process"), "{{process}}, 95 of 100"},
			}},
	},
}
