package cheattest

// Elsewhere is a threat, or a part of one, that no party poses by what it says in a session: the tests that hold it.
type Elsewhere struct {
	Threat  int
	Does    string
	Package string // directory
	Tests   []string
}

// ElsewhereTable lists these.
func ElsewhereTable() []Elsewhere {
	return []Elsewhere{
		{6, "parties that disagree on session, epoch, U, V or kind of proof", "engine/protocol/popk",
			[]string{"TestDisagreementIsRefused", "TestAChallengeBeforeTheOpeningsProvesNothing"}},
		{1, "negated proofs, which pass before a verifier of sums", "engine/protocol/popk",
			[]string{"TestNegationIsRefused"}},
		{13, "a malformed relinearisation or rotation key: the sacrifice fails", "engine/protocol/triple",
			[]string{"TestMalformedRelinearisationKey", "TestMalformedRotationKey"}},
		{16, "a MAC check that is retried after a failure", "engine/protocol/triple",
			[]string{"TestARetryAfterAFailedCheckIsNotForged"}},
		{16, "information about the MAC key in a failed check, over all errors and all keys of a small field", "engine/protocol/maccheck",
			[]string{"TestFailureHidesAlpha"}},
		{16, "a MAC key with too many failed checks", "services/store/vault", []string{"TestFailedChecksRetireAMACKey", "TestChecksUnderWayWhenTheProcessEnds"}},
		{17, "a tuple that is fetched twice, with crashes in between", "services/store/vault",
			[]string{"TestCrashAtEveryWrite", "TestDeliverAtOnce", "TestReplay"}},
		{18, "a single wrong entry with a right MAC, wherever it is", "engine/protocol/triple",
			[]string{"TestASingleWrongProductIsFound"}},
		{19, "a rogue share, which passes if commitments are not compared", "engine/protocol/keygen",
			[]string{"TestARogueKeyShareIsRefused", "TestARogueShareIsRefusedByItsStatement"}},
		{23, "samplers with centres between integers, compared with the exact law", "engine/sample", []string{"TestExactLaw",
			"TestGaussianFitsItsLaw"}},
		{24, "shares scaled by 2^30 under keys that are not proved: every check passes, and the noise rises",
			"engine/protocol/keygen", []string{"TestScaledSharesPassEveryCheck"}},
		{25, "a rushing peer, which learns the others' secrets if commitments are not compared",
			"engine/protocol/keygen", []string{"TestARushingPeerInTheRelinearisationKeyIsRefused"}},
		{26, "the noise of every operation with inputs at their bounds, compared with the bounds of the registry",
			"engine/gbfv", []string{"TestNoiseStudy", "TestWitnessesAreAtTheirBounds"}},
		{26, "the errors of all ciphertexts that a batch decrypts", "engine/protocol/triple", []string{"TestPhasesOfABatch"}},
	}
}
