package main

// checked names the mutations that switch each check off.
var checked = map[string][]string{
	"engine/protocol/verdict Check":           {"verdict/digest"},
	"engine/protocol/round CheckShape":        {"codec/residue", "popk/response-length", "keygen/length-of-equations"},
	"engine/protocol/round CheckSize":         {"round/bytes"},
	"engine/protocol/round CheckDuplicate":    {"round/second"},
	"engine/protocol/round CheckEcho":         {"keygen/echo"},
	"engine/protocol/round CheckCommitment":   {"keygen/commitment", "keygen/commitment-of-proofs", "maccheck/commitment", "popk/commitment"},
	"engine/protocol/popk CheckBound":         {"popk/bound"},
	"engine/protocol/popk CheckEquation":      {"popk/equation", "popk/equation-verdict"},
	"engine/protocol/keygen CheckBound":       {"keygen/bound-of-secrets", "keygen/bound-of-errors"},
	"engine/protocol/keygen CheckShare":       {"keygen/share"},
	"engine/protocol/keygen CheckEquation":    {"keygen/equation"},
	"engine/protocol/keygen CheckAgree":       {"keygen/agree"},
	"engine/protocol/triple CheckEvaluated":   {"triple/evaluated"},
	"engine/protocol/maccheck CheckMAC":       {"maccheck/mac"},
	"engine/protocol/maccheck CheckZero":      {"maccheck/zero"},
	"engine/protocol/maccheck CheckSacrifice": {"maccheck/sacrifice"},

	"engine/protocol/threshold/keygen CheckBound":         {"thresholdkeys/bound"},
	"engine/protocol/threshold/keygen CheckDegree":        {"thresholdkeys/degree"},
	"engine/protocol/threshold/keygen CheckOpened":        {"thresholdkeys/opened"},
	"engine/protocol/threshold/keygen CheckSquare":        {"thresholdkeys/square"},
	"engine/protocol/threshold/keygen CheckAgree":         {"thresholdkeys/agree"},
	"engine/protocol/threshold/reshare CheckDegree":       {"reshare/degree"},
	"engine/protocol/threshold/reshare CheckValue":        {"reshare/value"},
	"engine/protocol/threshold/masks CheckConsistency":    {"masks/consistency"},
	"engine/protocol/threshold/masks CheckMask":           {"masks/mask"},
	"engine/protocol/threshold/decrypt CheckAgreement":    {"decrypt/agreement", "decrypt/agreement-of-answers"},
	"engine/protocol/threshold/decrypt CheckAnswers":      {"decrypt/sums"},
	"engine/protocol/threshold/bgvdecrypt CheckAgreement": {"bgvdecrypt/agreement", "bgvdecrypt/agreement-of-answers"},
	"engine/protocol/threshold/bgvkeys CheckBound":        {"bgvkeys/bound"},
	"engine/protocol/threshold/bgvkeys CheckDegree":       {"bgvkeys/fits", "bgvkeys/degree"},
	"engine/protocol/threshold/bgvkeys CheckOpened":       {"bgvkeys/opened", "bgvkeys/opened-blame"},
	"engine/protocol/threshold/bgvkeys CheckAgree":        {"bgvkeys/agree"},
}

// excused are the functions with refusals that no mutation switches off, and why.
var excused = map[string]string{
	"engine/protocol/keygen/proofs.go proofs.accuse":          "notes what its callers have found, and their conditions are in the table",
	"engine/protocol/threshold/decrypt/start.go disagreement": "says what its callers have found, and their conditions are in the table",
	"services/evidence/keys.go referee.badKeyProof":           "passes on what the judge refuses; a history that a bound does not need changes nothing",
	"services/evidence/keys.go referee.keys":                  "passes on what the judge refuses",
	"services/evidence/proofs.go referee.judge":               "passes on what the judge refuses",
	"services/evidence/proofs.go referee.proofEquation":       "passes on what the judge refuses",
	"services/evidence/proofs.go referee.set":                 "passes on that there is no such set or field",
	"services/evidence/read.go decode":                        "passes on what is no encoding",
	"services/evidence/read.go head":                          "a file that begins otherwise is none, and a time that is none convicts nobody",
	"services/evidence/read.go truncated":                     "says that a file ends early",
	"services/evidence/verify.go verify":                      "the name of a job convicts nobody",
}
