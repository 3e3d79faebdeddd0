package masks

// MemoryBytes estimates what a run holds at one party, in bytes: with every peer its transfers, keys and messages, and
// its own records, as words and packed; and as much again for what waits for the garbage collector.
func MemoryBytes(k Kind, parties, records int) int64 {
	transfers := int64(k.transfers()) * int64(records+64)
	words := int64(k.planes()+len(k.widths())) * 8 * int64(records+64)
	return 2 * (48*transfers*int64(parties-1) + words)
}
