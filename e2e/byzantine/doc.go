// Package byzantine tests clusters in which a party or the coordinator cheats. The cheating party
// is the tests' own binary, started again with "party" and these arguments:
//
//	party --list
//	party --cheat NAME --config FILE
//	party --cheat - --config FILE
//
// It is a whole Lodge party, as `lodge party` runs it, that cheats in one named way. The last form
// reads one command per session from standard input: "cheat NAME", "record KIND" (be honest and
// record the messages, for replays of that kind of session), or "honest". It responds with a line
// that begins with ok and names the hooks of the previous cheat that were never reached. No program
// contains this code.
package byzantine
