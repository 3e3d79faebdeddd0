package main

var multikey = dashboard{
	name: "multikey", title: "multi-key ciphertexts", about: "Parties' own keys, what is computed under them, and what their owners decrypt together.",
	variables: []variable{{name: "process", label: "Party", query: "label_values(lodge_multikey_own_keys, process)", several: true}},
	panels: []panel{
		{kind: "stat", title: "Own keys", about: "Versions in use of each party's own keys. As a rule one; those of before stay until they are destroyed.", unit: "none", width: 8, height: 5,
			queries: []query{{`sum by (process) (lodge_multikey_own_keys{state="active", ` + chosen + `})`, "{{process}}"}}},
		{kind: "stat", title: "Parties with keys", about: "Of how many parties a party has the present keys, its own among them: it computes with no others.", unit: "none", width: 8, height: 5,
			queries: []query{{`lodge_multikey_published_keys{` + chosen + `}`, "{{process}}"}}},
		{kind: "stat", title: "A rotation", about: "What it takes on one processor, as a party estimates it from its last evaluations; a bootstrap has one for each key. 0: not measured yet.", unit: "s", width: 8, height: 5,
			queries: []query{{`lodge_multikey_rotation_seconds{` + chosen + `}`, "{{process}}"}}},
		{kind: "timeseries", title: "Evaluations that wait and run", about: "Two run at a time at a party, of different clients if there are some.", unit: "none", width: 8, height: 8, stacked: true,
			queries: []query{{`sum by (process, state) (lodge_multikey_evaluations{` + chosen + `})`, "{{process}}, {{state}}"}}},
		{kind: "timeseries", title: "Evaluations by outcome", about: "That have ended, in each interval: `ok`, `cancelled`, or the code of the refusal.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_multikey_evaluations_total{` + chosen + `}[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Time of an evaluation", about: "Half of those that succeeded and 95 of 100 took at most so long, without waiting.", unit: "s", width: 8, height: 8,
			queries: []query{
				{quantile(0.5, "lodge_multikey_evaluation_seconds", chosen, "process"), "{{process}}, half"},
				{quantile(0.95, "lodge_multikey_evaluation_seconds", chosen, "process"), "{{process}}, 95 of 100"},
			}},
		{kind: "timeseries", title: "Bootstraps", about: "Of evaluations that have succeeded, in each interval: they count when it ends.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_multikey_bootstraps_total{` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
		{kind: "timeseries", title: "Memory", about: "Of evaluations that wait or run, by estimate, and of results that are kept. What is refused for want of it is `busy` or `too_large`.", unit: "bytes", width: 8, height: 8,
			queries: []query{
				{`lodge_multikey_evaluations_bytes{` + chosen + `}`, "{{process}}, evaluations"},
				{`lodge_multikey_results_bytes{` + chosen + `}`, "{{process}}, results"},
			}},
		{kind: "timeseries", title: "Keys fetched", about: "Of other parties, in each interval, by outcome: `refused` are not the keys that their owner has signed.", unit: "none", width: 8, height: 8,
			queries: []query{{`sum by (outcome) (increase(lodge_multikey_fetches_total{` + chosen + `}[$__rate_interval]))`, "{{outcome}}"}}},
		{kind: "timeseries", title: "Decrypted together", about: "Ciphertexts that were decrypted for the first time, in each interval, by how many keys they are under: each has taken a mask at every party of its quorum, and counts at each.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (keys) (increase(lodge_multikey_decrypted_total{` + chosen + `}[$__rate_interval]))`, "{{keys}} keys"}}},
		{kind: "timeseries", title: "Decrypted by party", about: "The same, of each party. Whoever owns no keys of what clients ask for has none, or few.", unit: "none", width: 12, height: 8,
			queries: []query{{`sum by (process) (increase(lodge_multikey_decrypted_total{` + chosen + `}[$__rate_interval]))`, "{{process}}"}}},
	},
}
