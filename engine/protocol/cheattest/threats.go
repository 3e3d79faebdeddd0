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
		{6, "parties that do not agree on session, epoch, U, V or kind of proof", "engine/protocol/popk",
			[]string{"TestDisagreementIsRefused", "TestAChallengeBeforeTheOpeningsProvesNothing"}},
		{1, "a verifier of sums alone, and negated proofs, which pass there", "engine/protocol/popk",
			[]string{"TestNegationIsRefused"}},
		{13, "a relinearisation key that is malformed all the same: the sacrifice fails", "engine/protocol/triple",
			[]string{"TestMalformedRelinearisationKey", "TestMalformedRotationKey"}},
		{16, "a MAC check that is tried again after it has failed", "engine/protocol/triple",
			[]string{"TestARetryAfterAFailedCheckIsNotForged"}},
		{16, "what a failed check says about the MAC key, over all errors and all keys of a small field", "engine/protocol/maccheck",
			[]string{"TestFailureHidesAlpha"}},
		{16, "a MAC key with too many failed checks", "services/store/vault", []string{"TestFailedChecksRetireAMACKey", "TestChecksUnderWayWhenTheProcessEnds"}},
		{17, "a tuple that is drawn twice, with crashes in between", "services/store/vault",
			[]string{"TestCrashAtEveryWrite", "TestDeliverAtOnce", "TestReplay"}},
		{18, "a single wrong entry with a right MAC, wherever it is", "engine/protocol/triple",
			[]string{"TestASingleWrongProductIsFound"}},
		{19, "a rogue share where nobody compares commitments, which passes there", "engine/protocol/keygen",
			[]string{"TestARogueKeyShareIsRefused", "TestARogueShareIsRefusedByItsStatement"}},
		{23, "samplers with centres between integers, against the exact law", "engine/sample", []string{"TestExactLaw",
			"TestGaussianFitsItsLaw"}},
		{24, "shares 2^30 times as long where keys are not proved: every check passes, and the noise has risen",
			"engine/protocol/keygen", []string{"TestScaledSharesPassEveryCheck"}},
		{25, "a rushing peer where nobody compares commitments, which learns the others' secrets",
			"engine/protocol/keygen", []string{"TestARushingPeerInTheRelinearisationKeyIsRefused"}},
		{26, "the noise of every operation with inputs at their bounds, against the bounds of the registry",
			"engine/gbfv", []string{"TestNoiseStudy", "TestWitnessesAreAtTheirBounds"}},
		{26, "the errors of everything that a batch decrypts", "engine/protocol/triple", []string{"TestPhasesOfABatch"}},
	}
}
