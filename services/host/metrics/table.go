package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Metrics of sessions and their rounds.
var (
	RoundDuration = histogram(Party, "lodge_round_duration_seconds", "Wall time of a round, including waiting.", "protocol", "round")
	RoundCompute  = histogram(Party, "lodge_round_compute_seconds",
		"Time of a round's own step, including waiting for its turn to compute products.", "protocol", "round")
	sessions    = counter(Party, "lodge_sessions_total", "Sessions that ended.", "protocol", "outcome")
	running     = gauge(Party, "lodge_sessions_running", "Running sessions.", "protocol")
	sessionTime = histogram(Party, "lodge_session_duration_seconds", "Wall time of a session.", "protocol", "outcome")
	sessionLast = gauge(Party, "lodge_session_last_success_timestamp_seconds",
		"Time when a session last had a result, in Unix time, since this process began.", "protocol")
)

// Metrics of the peers of a process. PeerBytes counts "sent" and "received" bytes.
var (
	PeerBytes = counter(Party, "lodge_peer_bytes_total",
		"Bytes of frames sent to a peer, including resent frames, and of frames received from it.", "protocol", "round", "peer", "direction")
	PeerResumes = counter(Party, "lodge_peer_resumes_total", "Streams to a peer that were resumed after a broken connection.", "peer")
	PeerUp      = gauge(Both, "lodge_peer_up", "1 if the party responds to this process, which polls every few seconds, else 0.", "peer")
	PeerTrip    = histogram(Both, "lodge_peer_round_trip_seconds", "Round-trip time of the poll of a party.", "peer").
			within(prometheus.ExponentialBuckets(0.0002, 2, 15)) // 0.2 ms to 3.3 s
	blames = counter(Party, "lodge_blames_total",
		"Sessions that ended with a peer named for certain, by the class of the check that it failed.", "peer", "class")
)

// Metrics of checks, and of a party's record of its peers' cheats. The phase of a failed check of
// MACs is "offline" or "online". Offers are counted as "proven", "known" or an error code.
var (
	proofs = counter(Party, "lodge_proofs_checked_total",
		"Proofs that were verified: of peers about `plaintexts` and `keys`, and of a `client`. The outcome is `ok` or `refused`.", "proof", "outcome")
	MACCheckFailures = counter(Party, "lodge_mac_check_failures_total",
		"Checks of MACs that failed: `offline`, before anything was released, which drops the batch, or `online`, as a client reports, which burns a MAC key.", "phase")
	EvidenceLost    = counter(Party, "lodge_evidence_lost_total", "Sessions that could not keep all data that evidence of a cheat may need.")
	Accusations     = gauge(Party, "lodge_accusations", "Accusations of parties of the roster that are proved and not pardoned.")
	Excluded        = gauge(Party, "lodge_excluded_parties", "Parties of the roster that accusations exclude.")
	Unnamed         = gauge(Party, "lodge_unnamed_failures", "Failures without a named party that count towards stopping generation.")
	Stopped         = gauge(Party, "lodge_generation_stopped", "1 while failures without a named party stop generation, else 0.")
	UnnamedFailures = counter(Party, "lodge_unnamed_failures_total", "Sessions that failed because an unidentified party cheated.", "check")
	Offers          = counter(Party, "lodge_accusations_offered_total", "Files of evidence that peers offered.", "outcome")
)

// Metrics of the server of a process.
var (
	rpcDuration = histogram(All, "lodge_rpc_duration_seconds", "Time of a served call.", "method", "role", "code")
	rpcStreams  = gauge(All, "lodge_rpc_streams", "Open streams of callers.", "role")
	rpcConns    = gauge(All, "lodge_rpc_connections", "Open connections of callers with a known identity.", "role")
	rpcRefused  = counter(All, "lodge_rpc_refused_total",
		"Calls and connections that exceeded the limits on callers: `calls`, `connections`, `handshakes`, `strangers`, `slow` or `message`.", "reason")
	certificate = level(All, "lodge_certificate_expiry_timestamp_seconds", "Expiry of the certificate that this process serves, in Unix time.")
	buildInfo   = gauge(All, "lodge_build_info", "1, labelled by version.", "version")
)

// Metrics of the console of a process.
var (
	ConsoleSessions = gauge(Both, "lodge_console_sessions", "Browsers that are signed in to the console.")
	ConsoleRequests = gauge(Both, "lodge_console_requests", "Running requests and streams of the console.")
)

// Metrics of a party's tuples and of its clients' requests. The outcome of a decryption is
// "answered", "repeated" or an error code, and that of a product "ok" or an error code.
var (
	TuplesStored    = counter(Party, "lodge_tuples_stored_total", "Tuples that were activated.", "kind", "field")
	TuplesDelivered = counter(Party, "lodge_tuples_delivered_total", "Tuples whose shares were delivered to a client.", "kind", "field")
	Decryptions     = counter(Party, "lodge_decryptions_total", "Decryption requests of clients.", "outcome")
	Threshold       = counter(Party, "lodge_threshold_messages_total", "Messages that this party has decrypted with a quorum, without repeats.", "form")
	// A client with a rule with any_ciphertexts, which requires no provenance for the ciphertexts,
	// can read the keys.
	AnyCiphertextsRules = gauge(Party, "lodge_threshold_any_ciphertexts_rules", "Decryption rules with any_ciphertexts, whose clients can read the keys.")
	AnyCiphertexts      = counter(Party, "lodge_threshold_any_ciphertexts_messages_total",
		"Messages that were decrypted under rules with any_ciphertexts, without repeats.")
	LinearProducts = counter(Party, "lodge_linear_products_total",
		"Products of `outsourced` matrices, a `vector` or a `batch` that clients requested: `ok`, or an error code.", "product", "outcome")
	LinearAnswers  = counter(Party, "lodge_linear_answers_total", "Encrypted answers that were computed for such products.", "product")
	LinearDistance = gauge(Party, "lodge_linear_distance_spent_ratio",
		"Fraction of the statistical-distance budget that products on shares have spent on the matrices of client `with` towards `client`, from 0 to 1.", "client", "with")
)

// Metrics of a party's evaluators, and of an evaluator's own work.
var (
	EvaluatorRequests = counter(Party, "lodge_evaluator_requests_total",
		"Evaluations that the party requested from an evaluator, by outcome: `ok`, `stalled`, `slow`, `faulty`, `cancelled` or an error code.", "evaluator", "outcome")
	EvaluatorBytes      = counter(Party, "lodge_evaluator_bytes_total", "Bytes of frames exchanged with an evaluator.", "evaluator", "direction")
	EvaluatorMismatches = counter(Party, "lodge_evaluator_mismatches_total", "Results of an evaluator that differed from the party's own.", "evaluator")
	EvaluatorLocal      = counter(Party, "lodge_evaluator_local_total", "Evaluations that a party with evaluators computed itself.", "reason")
	EvaluatorTime       = histogram(Party, "lodge_evaluator_request_seconds", "Time of an evaluation that an evaluator completed.", "evaluator")
	EvaluatorUp         = gauge(Party, "lodge_evaluator_up",
		"Addresses at which the evaluator responds to the party, which polls every few seconds.", "evaluator")
	EvaluatorExcluded     = gauge(Party, "lodge_evaluator_excluded", "1 if the evaluator is excluded because it was wrong, else 0.", "evaluator")
	EvaluatorServed       = histogram(Evaluator, "lodge_evaluator_served_seconds", "Time of an evaluation at this evaluator, by `ok` or an error code.", "outcome")
	EvaluatorKeys         = level(Evaluator, "lodge_evaluator_keys_bytes", "Memory of the cached keys.")
	EvaluatorRunning      = level(Evaluator, "lodge_evaluator_running", "Running evaluations.")
	EvaluatorRunningBytes = level(Evaluator, "lodge_evaluator_running_bytes", "Estimated memory of the running evaluations.")
)

// Metrics of multi-key ciphertexts: the party's own keys, other parties' keys, evaluations, and
// decryptions.
var (
	MultikeyOwn     = gauge(Party, "lodge_multikey_own_keys", "Versions of the party's own multi-key keys: `active`, and `retired` ones.", "state")
	MultikeyFetches = counter(Party, "lodge_multikey_fetches_total",
		"Fetches of other parties' multi-key keys, by outcome: `ok`, `refused` (the data did not match the record) or `failed`.", "outcome")
	MultikeyEvaluations = counter(Party, "lodge_multikey_evaluations_total",
		"Evaluations on multi-key ciphertexts that have ended, by outcome: `ok`, `cancelled` or an error code.", "outcome")
	MultikeyBootstraps = counter(Party, "lodge_multikey_bootstraps_total", "Bootstraps of evaluations on multi-key ciphertexts that have succeeded.")
	MultikeyPublished  = gauge(Party, "lodge_multikey_published_keys", "Parties whose current multi-key keys this party has.")
	MultikeyOngoing    = gauge(Party, "lodge_multikey_evaluations", "Evaluations on multi-key ciphertexts that are `waiting` or `running`.", "state")
	MultikeyBytes      = gauge(Party, "lodge_multikey_evaluations_bytes", "Estimated memory of evaluations on multi-key ciphertexts that wait or run.")
	MultikeyTime       = histogram(Party, "lodge_multikey_evaluation_seconds", "Time of a successful evaluation on multi-key ciphertexts, without waiting.").
				within(prometheus.ExponentialBuckets(0.01, 4, 11)) // 10 ms to 3 h
	MultikeyRotation = gauge(Party, "lodge_multikey_rotation_seconds",
		"Estimated time of a rotation, which is a bootstrap's part for one key, on one processor; 0: not measured yet.")
	MultikeyResults   = gauge(Party, "lodge_multikey_results_bytes", "Results of evaluations that are kept for clients.")
	MultikeyDecrypted = counter(Party, "lodge_multikey_decrypted_total",
		"Multi-key ciphertexts that this party has decrypted with a quorum, by their number of keys, without repeats.", "keys")
)

// Metrics of a process's storage.
var (
	StoreBytes       = gauge(Party, "lodge_store_bytes", "Size of the party's store: files of the embedded store, or the PostgreSQL database.")
	StoreQuarantined = gauge(Party, "lodge_store_quarantined", "1 while the store is in quarantine, else 0.")
	StoreFault       = gauge(Party, "lodge_store_fault", "1 while writing to the store is not possible, else 0.")
	StoreRecords     = gauge(Party, "lodge_store_records", "Records in the store, by kind.", "kind")
	diskFree         = gauge(Both, "lodge_disk_free_bytes",
		"Free space on the file system of the `store` (where it is embedded), the `audit` log, or the coordinator's `data`.", "volume")
	diskSize  = gauge(Both, "lodge_disk_size_bytes", "Size of the same file system.", "volume")
	diskLeast = gauge(Both, "lodge_disk_min_free_bytes", "Minimum free space on the same file system, below which the process refuses new work.", "volume")
	diskLow   = gauge(Both, "lodge_disk_low", "1 while the process refuses new work because the same file system has too little free space, else 0.", "volume")
	// AuditFault is 1 while the audit log cannot be written.
	AuditFault = gauge(Party, "lodge_audit_fault", "1 while writing to the audit log is not possible, else 0.")
)

// Metrics of a coordinator's jobs and reservations. ReservationTime is observed only for attempts
// that did not wait for stock.
var (
	JobsEnded           = counter(Coordinator, "lodge_jobs_ended_total", "Jobs that ended.", "kind", "state")
	JobsOpen            = level(Coordinator, "lodge_jobs", "Unfinished jobs, by state and the reason why they wait.", "state", "reason")
	JobLast             = level(Coordinator, "lodge_job_last_completed_timestamp_seconds", "When a job last completed, in Unix time.", "kind")
	JobIdle             = level(Coordinator, "lodge_job_idle_seconds", "Time since the last report from the running job that is stalled longest; 0 if none runs.")
	Reservations        = counter(Coordinator, "lodge_reservations_total", "Attempts to reserve tuples, by outcome: `reserved` or an error code.", "outcome")
	ReservationsRefused = counter(Coordinator, "lodge_reservations_refused_total",
		"Attempts to reserve tuples that were refused because of a limit of the client.", "limit")
	ReservationsOpen = gauge(Coordinator, "lodge_reservations_open", "Open reservations that not all parties have delivered, by the client that made them.", "owner")
	ReservationTime  = histogram(Coordinator, "lodge_reservation_seconds", "Time of an attempt to reserve that did not wait for stock.")
)

// Labels of LinearProducts and LinearAnswers.
const (
	LinearOutsourced = "outsourced" // two encrypted matrices
	LinearVector     = "vector"     // a matrix times a shared vector
	LinearBatch      = "batch"      // shared matrices times vectors
)

// begin creates series at 0: Prometheus does not see an increase of a counter that starts at 1.
func (m *Metrics) begin() {
	for c, values := range map[Counter][]string{
		MACCheckFailures:    {"offline", "online"},
		rpcRefused:          rpc.Refusals,
		Reservations:        {"reserved", "out_of_stock", "unavailable", "internal"},
		ReservationsRefused: {"open", "tuples", "share", "lease", "rate"},
	} {
		for _, v := range values {
			m.Count(c, 0, v)
		}
	}
	for _, proof := range []string{ProofPlaintexts, ProofKeys, ProofClient} {
		m.Count(proofs, 0, proof, "ok")
		m.Count(proofs, 0, proof, "refused")
	}
	for _, c := range []Counter{EvidenceLost, AnyCiphertexts, MultikeyBootstraps} {
		m.Count(c, 0)
	}
	for _, g := range []Gauge{Accusations, Excluded, Unnamed, Stopped, AnyCiphertextsRules, StoreBytes, StoreQuarantined, StoreFault, AuditFault} {
		m.Set(g, 0)
	}
	if v, ok := m.vectors[ReservationTime.definition].(*prometheus.HistogramVec); ok {
		v.WithLabelValues()
	}
}
