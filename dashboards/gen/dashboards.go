package main

// dashboards lists all dashboards. Targets need the label process: see docs/reference/metrics.md.
var dashboards = []dashboard{overview, rounds, stock, party, decryption, multikey}

const (
	lodge   = `job=~".*lodge.*"`
	chosen  = `process=~"$process"`
	decrypt = `method="/lodge.decryption.v1.DecryptionService/DecryptShare"`
	quorums = `method="/lodge.threshold.v1.ThresholdService/Decrypt"`
)

var processes = variable{name: "process", label: "Process", query: "label_values(lodge_build_info, process)", several: true}

var overview = dashboard{
	name: "overview", title: "overview", about: "Health and activity of a cluster.",
	variables: []variable{processes},
	panels: []panel{
		{kind: "stat", title: "Processes up", about: "Fraction of the processes known to Prometheus that respond.", unit: "percentunit", width: 4, height: 4,
			queries: []query{{`avg(up{` + lodge + `})`, ""}}, steps: []step{{0, "red"}, {1, "green"}}},
		{kind: "stat", title: "Links up", about: "Fraction of all pairs of a process and a party in which the party responds.", unit: "percentunit",
			width: 4, height: 4, queries: []query{{`avg(lodge_peer_up)`, ""}}, steps: []step{{0, "red"}, {1, "green"}}},
		{kind: "stat", title: "Alerts", about: "Alerts that are firing now. docs/operations/alerts.md explains each alert.", unit: "none", width: 4, height: 4,
			queries: []query{{`sum(ALERTS{alertstate="firing", alertname=~"Lodge.+"}) or vector(0)`, ""}}, steps: zero},
		{kind: "stat", title: "Lowest stock", about: "Available tuples divided by the low mark, for the policy with the lowest ratio.", unit: "percentunit",
			width: 4, height: 4, queries: []query{{`min(lodge_stock_low_watermark_ratio)`, ""}},
			steps: []step{{0, "red"}, {0.5, "orange"}, {1, "green"}}},
		{kind: "stat", title: "Time to empty", about: "Time until the first class is used up; empty if no class runs out.", unit: "s",
			width: 4, height: 4, queries: []query{{`min(lodge_stock_time_to_empty_seconds)`, ""}},
			steps: []step{{0, "red"}, {3600, "orange"}, {86400, "green"}}},
		{kind: "stat", title: "Certificates", about: "Time until the first certificate of a process expires.", unit: "s", width: 4, height: 4,
			queries: []query{{`min(lodge_certificate_expiry_timestamp_seconds) - time()`, ""}},
			steps:   []step{{0, "red"}, {2 * 86400, "orange"}, {14 * 86400, "green"}}},
		{kind: "timeseries", title: "Jobs by state", about: "Unfinished jobs.", unit: "none", width: 8, height: 8, stacked: true,
			queries: []query{{`sum by (state) (lodge_jobs)`, "{{state}}"}}},
		{kind: "timeseries", title: "Reasons of waiting jobs", about: "Unfinished jobs, by reason for waiting; `nothing` means that all parties are computing.",
			unit: "none", width: 8, height: 8, stacked: true, queries: []query{{`sum by (reason) (lodge_jobs)`, "{{reason}}"}}},
		{kind: "timeseries", title: "Jobs ended", about: "Jobs ended in each interval, by final state.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (state) (increase(lodge_jobs_ended_total[$__rate_interval]))`, "{{state}}"}}},
		{kind: "timeseries", title: "Tuples made", about: "Activated tuples per second, by kind.", unit: "none", width: 8, height: 8,
			queries: []query{{`max by (kind) (sum by (kind, process) (rate(lodge_tuples_stored_total[$__rate_interval])))`, "{{kind}}"}}},
		{kind: "timeseries", title: "Stock", about: "Tuples that can be reserved, by kind.", unit: "short", width: 8, height: 8,
			queries: []query{{`sum by (kind) (lodge_stock_tuples{state="available"})`, "{{kind}}"}}},
		{kind: "bargauge", title: "Conduct", about: "All values should be 0. docs/guides/accusations.md explains them.", unit: "none", width: 8, height: 8,
			queries: []query{
				{`round(sum(increase(lodge_blames_total[$__range])))`, "blames"},
				{`round(sum(increase(lodge_mac_check_failures_total[$__range])))`, "failed MAC checks"},
				{`max(lodge_unnamed_failures)`, "unattributed failures"},
				{`max(lodge_accusations)`, "accusations"},
				{`max(lodge_excluded_parties)`, "excluded parties"},
				{`sum(lodge_generation_stopped)`, "parties that stopped generation"},
				{`sum(lodge_store_quarantined)`, "stores in quarantine"},
				{`sum(lodge_store_fault)`, "failing stores"},
			}, steps: zero, max: 3},
		{kind: "timeseries", title: "CPU", about: "Number of busy cores per process.", unit: "none", width: 12, height: 7,
			queries: []query{{`rate(process_cpu_seconds_total{` + lodge + `, ` + chosen + `}[$__rate_interval])`, "{{process}}"}}},
		{kind: "timeseries", title: "Memory", about: "Resident memory.", unit: "bytes", width: 12, height: 7,
			queries: []query{{`process_resident_memory_bytes{` + lodge + `, ` + chosen + `}`, "{{process}}"}}},
	},
}

var rounds = dashboard{
	name: "rounds", title: "rounds and network", about: "Time spent in the rounds of sessions, and traffic between parties.",
	variables: []variable{
		{name: "process", label: "Party", query: "label_values(lodge_round_duration_seconds_count, process)", several: true},
		{name: "protocol", label: "Protocol", query: "label_values(lodge_round_duration_seconds_count, protocol)", several: true},
	},
	panels: []panel{
		{kind: "state-timeline", title: "Reachability", about: "Whether a party responds to a process, which probes it every five seconds.", unit: "none",
			width: 12, height: 8, queries: []query{{`lodge_peer_up{` + chosen + `}`, "{{process}} → {{peer}}"}}, steps: one},
		{kind: "heatmap", title: "Round trips", about: "Distribution of the round-trip times of probes to peers.", unit: "s", width: 12, height: 8,
			queries: []query{{`sum by (le) (increase(lodge_peer_round_trip_seconds_bucket{` + chosen + `}[$__rate_interval]))`, "{{le}}"}}},
		{kind: "heatmap", title: "Bandwidth by link", about: "Bytes per second that a party sends to another, with one row per link.", unit: "Bps",
			width: 12, height: 8, queries: []query{{`sum by (process, peer) (rate(lodge_peer_bytes_total{direction="sent", ` + chosen + `}[$__rate_interval]))`, "{{process}} → {{peer}}"}}},
		{kind: "timeseries", title: "Bandwidth", about: "Bytes per second that a party sends to all others.", unit: "Bps", width: 12, height: 8,
			queries: []query{{`sum by (process) (rate(lodge_peer_bytes_total{direction="sent", ` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "bargauge", title: "Time by round", about: "Seconds in each round over the selected time range, including waiting, averaged over the parties. Shows the 15 longest rounds.",
			unit: "s", width: 8, height: 12, queries: []query{{`topk(15, avg by (protocol, round) (increase(lodge_round_duration_seconds_sum{` + chosen + `, protocol=~"$protocol"}[$__range])))`, "{{protocol}}: {{round}}"}}},
		{kind: "bargauge", title: "Compute time by round", about: "Seconds of each round that the party spends on its own computation.", unit: "s", width: 8, height: 12,
			queries: []query{{`topk(15, avg by (protocol, round) (increase(lodge_round_compute_seconds_sum{` + chosen + `, protocol=~"$protocol"}[$__range])))`, "{{protocol}}: {{round}}"}}},
		{kind: "bargauge", title: "Bytes by round", about: "Bytes sent to all peers over the selected time range, averaged over the parties. Shows the 15 largest rounds.",
			unit: "bytes", width: 8, height: 12, queries: []query{{`topk(15, avg by (protocol, round) (sum by (process, protocol, round) (increase(lodge_peer_bytes_total{direction="sent", ` + chosen + `, protocol=~"$protocol"}[$__range]))))`, "{{protocol}}: {{round}}"}}},
		{kind: "timeseries", title: "Sessions", about: "Sessions that are running now.", unit: "none", width: 8, height: 7,
			queries: []query{{`lodge_sessions_running{` + chosen + `, protocol=~"$protocol"}`, "{{process}}: {{protocol}}"}}},
		{kind: "timeseries", title: "Duration of sessions", about: "Half of them and 95 of 100 took at most so long.", unit: "s", width: 8, height: 7,
			queries: []query{
				{quantile(0.5, "lodge_session_duration_seconds", chosen+`, protocol=~"$protocol"`, "protocol"), "{{protocol}}, median"},
				{quantile(0.95, "lodge_session_duration_seconds", chosen+`, protocol=~"$protocol"`, "protocol"), "{{protocol}}, 95th percentile"},
			}},
		{kind: "timeseries", title: "Streams resumed", about: "Streams resumed after a broken connection, in each interval.", unit: "none", width: 8, height: 7,
			queries: []query{{`sum by (process, peer) (increase(lodge_peer_resumes_total{` + chosen + `}[$__rate_interval]))`, "{{process}} → {{peer}}"}}},
	},
}

const class = `tenant=~"$tenant", kind=~"$kind"`

var stock = dashboard{
	name: "stock", title: "stock", about: "Available tuples, production and reservations.",
	variables: []variable{
		{name: "tenant", label: "Tenant", query: "label_values(lodge_stock_tuples, tenant)", several: true},
		{name: "kind", label: "Kind", query: "label_values(lodge_stock_tuples, kind)", several: true},
	},
	panels: []panel{
		{kind: "bargauge", title: "Stock relative to low mark", about: "Available tuples divided by the low mark, for the policy with the lowest ratio. Production starts below 100 %.",
			unit: "percentunit", width: 8, height: 6, queries: []query{{`lodge_stock_low_watermark_ratio{` + class + `}`, "{{tenant}} {{kind}} {{field}}"}},
			steps: []step{{0, "red"}, {0.5, "orange"}, {1, "green"}}, max: 2},
		{kind: "stat", title: "Policies held back", about: "Policies that start no jobs although the stock is low. `lodge stock` shows the reason.", unit: "none", width: 4, height: 6,
			queries: []query{{`sum(lodge_stock_policies_held{` + class + `})`, ""}}, steps: zero},
		{kind: "bargauge", title: "Time to empty", about: "Forecast from recent production and use. Classes that do not run out are not shown.", unit: "s", width: 6, height: 6,
			queries: []query{{`lodge_stock_time_to_empty_seconds{` + class + `}`, "{{tenant}} {{kind}} {{field}}"}},
			steps:   []step{{0, "red"}, {3600, "orange"}, {86400, "green"}}, max: 86400},
		{kind: "bargauge", title: "Since the last job", about: "Time since a job of each kind last completed.", unit: "s", width: 6, height: 6,
			queries: []query{{`time() - lodge_job_last_completed_timestamp_seconds`, "{{kind}}"}}},
		{kind: "timeseries", title: "Available and marks", about: "Tuples that can be reserved, and the low and high marks of the policies.", unit: "short", width: 12, height: 9,
			queries: []query{
				{`sum by (kind) (lodge_stock_tuples{state="available", ` + class + `})`, "{{kind}}"},
				{`sum by (kind) (lodge_stock_low_watermark_tuples{` + class + `})`, "{{kind}}, low mark"},
				{`sum by (kind) (lodge_stock_high_watermark_tuples{` + class + `})`, "{{kind}}, high mark"},
			}},
		{kind: "timeseries", title: "Tuples by state", about: "State of all known tuples.", unit: "short", width: 12, height: 9, stacked: true,
			queries: []query{{`sum by (state) (lodge_stock_tuples{` + class + `})`, "{{state}}"}}},
		{kind: "timeseries", title: "Made and delivered", about: "Tuples per second at the party with the highest rate.", unit: "none", width: 12, height: 8,
			queries: []query{
				{`max by (kind) (sum by (kind, process) (rate(lodge_tuples_stored_total{kind=~"$kind"}[$__rate_interval])))`, "{{kind}} made"},
				{`max by (kind) (sum by (kind, process) (rate(lodge_tuples_delivered_total{kind=~"$kind"}[$__rate_interval])))`, "{{kind}} delivered"},
			}},
		{kind: "timeseries", title: "Reservations", about: "Attempts in each interval, by outcome.", unit: "none", width: 6, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_reservations_total[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Duration of reservations", about: "Median and 99th percentile, without reservations that waited for stock.", unit: "s", width: 6, height: 8,
			queries: []query{{quantile(0.5, "lodge_reservation_seconds", "", ""), "median"}, {quantile(0.99, "lodge_reservation_seconds", "", ""), "99th percentile"}}},
	},
}

var party = dashboard{
	name: "party", title: "one party", about: "The process of one party: computation, storage, calls and misconduct of peers.",
	variables: []variable{{name: "process", label: "Party", query: "label_values(lodge_store_bytes, process)"}},
	panels: []panel{
		{kind: "stat", title: "Up since", about: "Uptime of the process.", unit: "s", width: 4, height: 4,
			queries: []query{{`time() - process_start_time_seconds{` + lodge + `, ` + chosen + `}`, ""}}},
		{kind: "stat", title: "Peers up", about: "Fraction of the peers that respond.", unit: "percentunit", width: 4, height: 4,
			queries: []query{{`avg(lodge_peer_up{` + chosen + `})`, ""}}, steps: one},
		{kind: "stat", title: "Quarantine", about: "1 while the store is in quarantine.", unit: "none", width: 4, height: 4,
			queries: []query{{`lodge_store_quarantined{` + chosen + `}`, ""}}, steps: zero},
		{kind: "stat", title: "Generation stopped", about: "1 while failures without an identified party stop generation.", unit: "none", width: 4, height: 4,
			queries: []query{{`lodge_generation_stopped{` + chosen + `}`, ""}}, steps: zero},
		{kind: "stat", title: "Store", about: "Size of the store.", unit: "bytes", width: 4, height: 4, queries: []query{{`lodge_store_bytes{` + chosen + `}`, ""}}},
		{kind: "stat", title: "Certificate", about: "Time until the certificate expires.", unit: "s", width: 4, height: 4,
			queries: []query{{`lodge_certificate_expiry_timestamp_seconds{` + chosen + `} - time()`, ""}},
			steps:   []step{{0, "red"}, {2 * 86400, "orange"}, {14 * 86400, "green"}}},
		{kind: "timeseries", title: "CPU", about: "Number of busy cores.", unit: "none", width: 8, height: 7,
			queries: []query{{`rate(process_cpu_seconds_total{` + lodge + `, ` + chosen + `}[$__rate_interval])`, "cores"}}},
		{kind: "timeseries", title: "Memory", about: "Resident memory, and the part used by Go's heap.", unit: "bytes", width: 8, height: 7,
			queries: []query{
				{`process_resident_memory_bytes{` + lodge + `, ` + chosen + `}`, "resident"},
				{`go_memstats_heap_inuse_bytes{` + lodge + `, ` + chosen + `}`, "heap"},
			}},
		{kind: "timeseries", title: "Network", about: "Bytes of frames per second, to and from all peers.", unit: "Bps", width: 8, height: 7,
			queries: []query{{`sum by (direction) (rate(lodge_peer_bytes_total{` + chosen + `}[$__rate_interval]))`, "{{direction}}"}}},
		{kind: "timeseries", title: "Sessions ended", about: "Sessions ended in each interval, by protocol and outcome.", unit: "none", width: 8, height: 7,
			queries: []query{{`sum by (protocol, outcome) (increase(lodge_sessions_total{` + chosen + `}[$__rate_interval]))`, "{{protocol}}: {{outcome}}"}}},
		{kind: "timeseries", title: "Proofs verified", about: "Proofs verified per second, by kind of proof and outcome.", unit: "none", width: 8, height: 7,
			queries: []query{{`sum by (proof, outcome) (rate(lodge_proofs_checked_total{` + chosen + `}[$__rate_interval]))`, "{{proof}}: {{outcome}}"}}},
		{kind: "bargauge", title: "Misconduct of peers", about: "Blames over the selected time range by peer, unattributed failures and accusations.", unit: "none", width: 8, height: 7,
			queries: []query{{`round(sum by (peer) (increase(lodge_blames_total{` + chosen + `}[$__range])))`, "blames of {{peer}}"},
				{`lodge_unnamed_failures{` + chosen + `}`, "unattributed failures"}, {`lodge_accusations{` + chosen + `}`, "accusations"}},
			steps: zero, max: 3},
		{kind: "timeseries", title: "Calls", about: "Calls served per second, by role of the caller and result.", unit: "reqps", width: 8, height: 7,
			queries: []query{{`sum by (role, code) (rate(lodge_rpc_duration_seconds_count{` + chosen + `}[$__rate_interval]))`, "{{role}}: {{code}}"}}},
		{kind: "timeseries", title: "Streams", about: "Streams that callers have open.", unit: "none", width: 8, height: 7, stacked: true,
			queries: []query{{`lodge_rpc_streams{` + chosen + `}`, "{{role}}"}}},
		{kind: "bargauge", title: "Slowest calls", about: "Mean duration of calls by method over the selected time range. Calls that follow a job last as long as the job.",
			unit: "s", width: 8, height: 7, queries: []query{{`topk(8, sum by (method) (increase(lodge_rpc_duration_seconds_sum{` + chosen + `}[$__range])) / (sum by (method) (increase(lodge_rpc_duration_seconds_count{` + chosen + `}[$__range])) > 0))`, "{{method}}"}}},
		{kind: "bargauge", title: "Records", about: "Records in the store by kind, counted every five minutes.", unit: "none", width: 8, height: 7,
			queries: []query{{`lodge_store_records{` + chosen + `}`, "{{kind}}"}}},
		{kind: "bargauge", title: "Free disk space", about: "Free fraction of the file systems of the store and of the audit log.", unit: "percentunit", width: 8, height: 7,
			queries: []query{{`lodge_disk_free_bytes{` + chosen + `} / lodge_disk_size_bytes{` + chosen + `}`, "{{volume}}"}},
			steps:   []step{{0, "red"}, {0.02, "orange"}, {0.3, "green"}}, max: 1},
		{kind: "timeseries", title: "Goroutines", about: "Number of goroutines. Unbounded growth indicates a leak.", unit: "none", width: 8, height: 7,
			queries: []query{{`go_goroutines{` + lodge + `, ` + chosen + `}`, "goroutines"}}},
	},
}

var decryption = dashboard{
	name: "decryption", title: "decryption for clients", about: "Decryptions for clients, and their duration.",
	variables: []variable{{name: "process", label: "Party", query: "label_values(lodge_store_bytes, process)", several: true}},
	panels: []panel{
		{kind: "stat", title: "Answered", about: "Requests for which a party returned its share for the first time, over the selected time range, including threshold keys.", unit: "none", width: 8, height: 5,
			queries: []query{{`round(sum by (process) (increase(lodge_decryptions_total{outcome="answered", ` + chosen + `}[$__range])))`, "{{process}}"}}},
		{kind: "stat", title: "Parties out of step", about: "Difference between the largest and the smallest number of requests that a party has answered: requests that did not reach all parties.", unit: "none", width: 8, height: 5,
			queries: []query{{`max(sum by (process) (lodge_rpc_duration_seconds_count{code="ok", ` + decrypt + `, ` + chosen + `})) - min(sum by (process) (lodge_rpc_duration_seconds_count{code="ok", ` + decrypt + `, ` + chosen + `}))`, ""}}},
		{kind: "stat", title: "Proofs refused", about: "Refused proofs of clients, over the selected time range.", unit: "none", width: 8, height: 5,
			queries: []query{{`round(sum(increase(lodge_proofs_checked_total{proof="client", outcome="refused", ` + chosen + `}[$__range])))`, ""}}, steps: zero},
		{kind: "timeseries", title: "Requests by outcome", about: "Requests in each interval: `answered`, `repeated` by the same client, or the reason of the refusal.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_decryptions_total{` + chosen + `}[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Requests by party", about: "Requests in each interval under keys with which all parties decrypt. Clients send each request to all parties, so the lines should coincide.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_rpc_duration_seconds_count{` + decrypt + `, ` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "timeseries", title: "Duration of requests", about: "Median and 95th percentile, including the upload.", unit: "s", width: 12, height: 8,
			queries: []query{
				{quantile(0.5, "lodge_rpc_duration_seconds", decrypt+", "+chosen, "process"), "{{process}}, median"},
				{quantile(0.95, "lodge_rpc_duration_seconds", decrypt+", "+chosen, "process"), "{{process}}, 95th percentile"},
			}},
		{kind: "timeseries", title: "Streams of clients", about: "Open streams, at most 32 per client.", unit: "none", width: 12, height: 8,
			queries: []query{{`lodge_rpc_streams{role="client", ` + chosen + `}`, "{{process}}"}}},
		{kind: "timeseries", title: "Messages under threshold keys, by form of masks", about: "Messages decrypted for the first time, in each interval. Each message uses one mask at every party of its quorum, and each of these parties counts it.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (form) (increase(lodge_threshold_messages_total{` + chosen + `}[$__rate_interval]))`, "{{form}}"}}},
		{kind: "timeseries", title: "Messages under threshold keys, by party", about: "Messages decrypted in each interval. A party outside all requested quorums has no messages.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_threshold_messages_total{` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "timeseries", title: "Requests under threshold keys, by outcome", about: "Requests in each interval: `ok`, or the error code, such as `out_of_stock` for masks.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (code) (increase(lodge_rpc_duration_seconds_count{` + quorums + `, ` + chosen + `}[$__rate_interval]))`, "{{code}}"}}},
		{kind: "timeseries", title: "Duration of requests under threshold keys", about: "Median and 95th percentile, including the upload and the run with the quorum.", unit: "s", width: 12, height: 8,
			queries: []query{
				{quantile(0.5, "lodge_rpc_duration_seconds", quorums+", "+chosen, "process"), "{{process}}, median"},
				{quantile(0.95, "lodge_rpc_duration_seconds", quorums+", "+chosen, "process"), "{{process}}, 95th percentile"},
			}},
	},
}
