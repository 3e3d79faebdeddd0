package main

var multikey = dashboard{
	name: "multikey", title: "multi-key ciphertexts", about: "Parties' own keys, evaluations under these keys, and joint decryptions by their owners.",
	variables: []variable{{name: "process", label: "Party", query: "label_values(lodge_multikey_own_keys, process)", several: true}},
	panels: []panel{
		{kind: "stat", title: "Own keys", about: "Versions in use of each party's own keys. Usually one; older versions remain until they are destroyed.", unit: "none", width: 8, height: 5,
			queries: []query{{`sum by (process) (lodge_multikey_own_keys{state="active", ` + chosen + `})`, "{{process}}"}}},
		{kind: "stat", title: "Parties with keys", about: "Number of parties whose current keys a party has, including its own. Evaluations use only these keys.", unit: "none", width: 8, height: 5,
			queries: []query{{`lodge_multikey_published_keys{` + chosen + `}`, "{{process}}"}}},
		{kind: "stat", title: "Time per rotation", about: "Time of a rotation on one processor, estimated from the party's last evaluations. A bootstrap has one rotation per key. 0: not measured yet.", unit: "s", width: 8, height: 5,
			queries: []query{{`lodge_multikey_rotation_seconds{` + chosen + `}`, "{{process}}"}}},
		{kind: "timeseries", title: "Evaluations waiting and running", about: "A party runs two evaluations at a time, of different clients if possible.", unit: "none", width: 8, height: 8, stacked: true,
			queries: []query{{`sum by (process, state) (lodge_multikey_evaluations{` + chosen + `})`, "{{process}}, {{state}}"}}},
		{kind: "timeseries", title: "Evaluations by outcome", about: "Evaluations ended in each interval: `ok`, `cancelled`, or the error code.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_multikey_evaluations_total{` + chosen + `}[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Duration of evaluations", about: "Median and 95th percentile of successful evaluations, without the time in the queue.", unit: "s", width: 8, height: 8,
			queries: []query{
				{quantile(0.5, "lodge_multikey_evaluation_seconds", chosen, "process"), "{{process}}, median"},
				{quantile(0.95, "lodge_multikey_evaluation_seconds", chosen, "process"), "{{process}}, 95th percentile"},
			}},
		{kind: "timeseries", title: "Bootstraps", about: "Bootstraps of successful evaluations in each interval, counted when the evaluation ends.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_multikey_bootstraps_total{` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "timeseries", title: "Memory", about: "Estimated memory of waiting and running evaluations, and memory of stored results. Requests that exceed the limit fail with `busy` or `too_large`.", unit: "bytes", width: 8, height: 8,
			queries: []query{
				{`lodge_multikey_evaluations_bytes{` + chosen + `}`, "{{process}}, evaluations"},
				{`lodge_multikey_results_bytes{` + chosen + `}`, "{{process}}, results"},
			}},
		{kind: "timeseries", title: "Keys fetched", about: "Keys fetched from other parties in each interval, by outcome. `refused` means that the keys do not match their owner's signed record.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_multikey_fetches_total{` + chosen + `}[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Multi-key decryptions by number of keys", about: "Ciphertexts decrypted for the first time in each interval, by number of keys. Each ciphertext uses one mask at every party of its quorum, and each of these parties counts it.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (keys) (increase(lodge_multikey_decrypted_total{` + chosen + `}[$__rate_interval]))`, "{{keys}} keys"}}},
		{kind: "timeseries", title: "Multi-key decryptions by party", about: "Ciphertexts decrypted for the first time in each interval, by party. A party whose keys are not used in requests has few or none.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_multikey_decrypted_total{` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
	},
}
